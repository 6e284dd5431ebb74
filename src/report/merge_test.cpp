#include "src/report/merge.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::report;

namespace {

FailedWorker failed(int node_rank, int rank, std::int64_t wall_ms, std::string tail = "") {
  return {.node_rank = node_rank,
          .rank = rank,
          .pid = 100 + rank,
          .exit = {.code = 1},
          .wall_ms = wall_ms,
          .tail = {.bytes = std::move(tail)}};
}

JobReport node(int node_rank, std::vector<FailedWorker> failures, std::uint32_t last_round = 0) {
  JobReport report{.run_id = "job",
                   .host = "node" + std::to_string(node_rank),
                   .node_rank = node_rank,
                   .failures = std::move(failures)};
  for (std::uint32_t round = 0; round <= last_round; ++round) {
    report.rounds.push_back({.round = round, .node_rank = node_rank, .host = report.host});
  }
  return report;
}

std::vector<int> ranks(const std::vector<FailedWorker>& failures) {
  std::vector<int> out;
  for (const FailedWorker& worker : failures) out.push_back(worker.rank);
  return out;
}

}  // namespace

TEST_CASE("several nodes' failures come in order of time, those that were only stopped last") {
  FailedWorker stopped = failed(0, 2, 50);
  stopped.stopped_by_us = true;
  const auto merged =
      merge_reports({node(1, {failed(1, 9, 300), failed(1, 8, 100)}), node(0, {failed(0, 0, 200), stopped})});
  REQUIRE(merged);
  CHECK(ranks(merged->failures) == std::vector{8, 0, 9, 2});
  CHECK(merged->host == "node0");
}

TEST_CASE("of several nodes' hangs the one of the last round is kept, whichever node tells it") {
  JobReport first = node(0, {});
  first.hang = Hang{.round = 1, .cause = "old"};
  JobReport second = node(1, {});
  second.hang = Hang{.round = 2, .cause = "new"};
  const auto merged = merge_reports({first, second, node(2, {})});
  REQUIRE(merged);
  REQUIRE(merged->hang);
  CHECK(merged->hang->cause == "new");
}

TEST_CASE(
    "a worker that lost its peer comes behind the one that failed, whatever the nodes' clocks "
    "say") {
  const auto merged = merge_reports({node(0, {failed(0, 0, 100,
                                                     "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection "
                                                     "closed by peer [::1]\n")}),
                                     node(1, {failed(1, 8, 900, "ValueError: bad label\n")})});
  REQUIRE(merged);
  CHECK(ranks(merged->failures) == std::vector{8, 0});
}

TEST_CASE("a worker that two reports name is there once, with what either knows") {
  FailedWorker bare = failed(1, 8, 100);
  FailedWorker known = failed(1, 8, 100, "last words\n");
  known.host = "node1";
  known.error = ErrorFile{.message = "m"};
  known.oom_evidence = "oom";
  known.timer = ExpiredTimer{.scope = "load"};
  const auto merged = merge_reports({node(0, {bare}), node(1, {known}), node(1, {known})});
  REQUIRE(merged);
  REQUIRE(merged->failures.size() == 1);
  const FailedWorker& worker = merged->failures[0];
  CHECK(worker.host == "node1");
  CHECK(worker.tail.bytes == "last words\n");
  CHECK(worker.error->message == "m");
  CHECK(worker.oom_evidence == "oom");
  CHECK(worker.timer == ExpiredTimer{.scope = "load"});
  CHECK(merged->rounds.size() == 2);
}

TEST_CASE("the last failures of a node that was lost earlier belong to their own round") {
  const auto merged = merge_reports({node(0, {failed(0, 0, 500)}, 1), node(1, {failed(1, 8, 100)}, 0)});
  REQUIRE(merged);
  CHECK(ranks(merged->failures) == std::vector{0});
  REQUIRE(merged->rounds.size() == 3);
  CHECK(merged->rounds[0].node_rank == 0);
  CHECK(merged->rounds[1].node_rank == 1);
  CHECK(ranks(merged->rounds[1].failures) == std::vector{8});
  CHECK(merged->rounds[2].round == 1);
}

TEST_CASE("one node's failure is the job's, and every node's logs and left-overs are named") {
  JobReport first = node(0, {});
  first.outcome = JobReport::Outcome::kStopped;
  first.log_directory = "/a";
  first.restarts_used = 1;
  JobReport second = node(1, {failed(1, 8, 100)});
  second.log_directory = "/b";
  second.left_behind = "process 7";
  second.restarts_used = 2;
  second.reason = "why";
  const auto merged = merge_reports({first, second});
  REQUIRE(merged);
  CHECK(merged->outcome == JobReport::Outcome::kFailed);
  CHECK(merged->log_directory == "/a, /b");
  CHECK(merged->left_behind == "process 7");
  CHECK(merged->restarts_used == 2);
  CHECK(merged->reason == "why");
}

TEST_CASE("a single report keeps its order, reports of two jobs and none at all are refused") {
  const auto merged = merge_reports({node(0, {failed(0, 1, 900), failed(0, 0, 100)})});
  REQUIRE(merged);
  CHECK(ranks(merged->failures) == std::vector{1, 0});
  JobReport other = node(1, {});
  other.run_id = "other";
  CHECK(merge_reports({node(0, {}), other}).error().reason ==
        "the reports are from different jobs, with the run ids job and other");
  CHECK_FALSE(merge_reports({}));
}
