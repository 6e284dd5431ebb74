#include "health/progress/node_progress.h"

#include <doctest/doctest.h>

#include "health/progress/limits.h"

using namespace elastic;
using namespace elastic::progress;

TEST_CASE("a node tells of the newest and the oldest sign of progress of its ranks") {
  NodeProgress node;
  node.begin_round(4);
  CHECK_FALSE(node.summary(0));
  CHECK_FALSE(node.report_due_ms());
  node.rank(1).said("step=5\n", 1000);
  node.rank(3).said("step=7\n", 2000);
  const auto summary = node.summary(3000);
  REQUIRE(summary);
  CHECK(summary->speakers == 2);
  CHECK(summary->newest.local_rank == 3);
  CHECK(summary->newest.progress.step == 7);
  CHECK(summary->oldest.local_rank == 1);
  CHECK(summary->oldest.progress.age_ms == 2000);
}

TEST_CASE("a file that several ranks write is of none of them") {
  NodeProgress node;
  node.begin_round(2);
  node.shared().wrote(RankProgress::Stream::kOut, "iteration 3/ 9 |\n", 1000);
  const auto speakers = node.speakers(1000);
  REQUIRE(speakers.size() == 1);
  CHECK_FALSE(speakers.front().local_rank);
}

TEST_CASE("the coordinator is told at once, then of what is new, and not too often") {
  NodeProgress node;
  node.begin_round(1);
  node.rank(0).said("step=1\n", 1000);
  CHECK(node.report_due_ms() == 0);
  node.reported(1000);
  CHECK_FALSE(node.report_due_ms());
  node.rank(0).said("step=2\n", 1100);
  CHECK(node.report_due_ms() == 1000 + limits::kProgressReportMs);
  node.reported(6000);
  node.rank(0).said("step=2\n", 7000);
  CHECK_FALSE(node.report_due_ms());
}

TEST_CASE("a new round knows nothing of the last one") {
  NodeProgress node;
  node.begin_round(1);
  node.rank(0).said("step=1\n", 1000);
  node.begin_round(2);
  CHECK_FALSE(node.summary(2000));
  CHECK_FALSE(node.report_due_ms());
}

TEST_CASE("the speed is measured by one rank, first of one whose file says when its step was made") {
  NodeProgress node;
  node.begin_round(2);
  CHECK(!node.last_step(1000));
  node.shared().wrote(RankProgress::Stream::kOut, "iteration 3/ 9 |\n", 1000);
  const auto shared = node.last_step(1500);
  REQUIRE(shared);
  CHECK(shared->step == 3);
  CHECK(shared->at_ms == 1000);
  node.rank(1).said("step=5\n", 2000);
  const auto said = node.last_step(3000);
  REQUIRE(said);
  CHECK(said->step == 5);
  CHECK(said->at_ms == 2000);
  CHECK(said->source != shared->source);
  node.rank(1).has_metrics(R"({"step": 6})", 3000);  // says no time
  CHECK(node.last_step(3000)->source == said->source);
  node.rank(1).has_metrics(R"({"step": 7, "timestamp": 90.5})", 4000);
  CHECK(node.last_step(5000) == NodeProgress::Step{.source = 1, .step = 7, .at_ms = 90'500});
  node.begin_round(2);
  CHECK(!node.last_step(6000));
}
