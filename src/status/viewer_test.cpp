#include "src/status/viewer.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "src/base/json.h"
#include "src/base/text.h"
#include "src/status/metrics.h"
#include "src/status/status_json.h"
#include "src/status/test_snapshot.h"

using namespace elastic;
using namespace elastic::status;

namespace {

// Collects the members of a document that have a text, "coordinator.jobs.run_id"; empty texts and null do not count.
void find_texts(const Json& json, const std::string& path, std::set<std::string>& found) {
  if (const std::string* text = json.as_string(); text != nullptr && !text->empty()) found.insert(path);
  if (const Json::Array* list = json.as_array()) {
    for (const Json& each : *list) find_texts(each, path, found);
  }
  if (const Json::Object* members = json.as_object()) {
    for (const auto& [name, value] : *members) find_texts(value, path.empty() ? name : path + "." + name, found);
  }
}

// A snapshot in which every text that elastic-run does not choose itself is marked, but for the job's id.
Snapshot with_marked_texts() {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.node->name = snapshot.node->endpoint = snapshot.node->waits_for = snapshot.node->coordinator_at = "MARK";
  Job& job = snapshot.coordinator->jobs[0];
  job.again_because = "MARK";
  for (Failure& failure : job.failures) failure.node = failure.text = "MARK";
  job.hang.last->cause = "MARK";
  job.hang.last->nodes = {"MARK"};
  for (Member& member : job.members) member.name = member.peer_address = "MARK";
  for (EndedJob& ended : snapshot.coordinator->last_ended) ended.reason = "MARK";
  return snapshot;
}

}  // namespace

TEST_CASE("without a token counts and states are seen, and of texts only those that are listed here") {
  auto json = Json::parse(status_json(counts_only(with_marked_texts())), "status");
  REQUIRE(json.has_value());
  std::set<std::string> found;
  find_texts(*json, "", found);
  const std::set<std::string> listed = {
      "version",
      "node.run_id",
      "node.state",
      "node.start",
      "node.warm_workers.state",
      "node.progress.source",
      "node.progress.phase",
      "node.workers.progress.source",
      "node.workers.progress.phase",
      "coordinator.jobs.run_id",
      "coordinator.jobs.phase",
      "coordinator.jobs.failures.cause",
      "coordinator.jobs.hang.state",
      "coordinator.jobs.hang.limit_from",
      "coordinator.jobs.hang.phase",
      "coordinator.jobs.hang.last.verdict",
      "coordinator.jobs.hang.last.fault",
      "coordinator.jobs.progress.source",
      "coordinator.jobs.progress.phase",
      "coordinator.jobs.progress_oldest.source",
      "coordinator.jobs.progress_oldest.phase",
      "coordinator.jobs.members.state",
      "coordinator.last_ended.run_id",
      "coordinator.last_ended.outcome",
  };
  CHECK(found == listed);
  CHECK(json->find("counts_only")->as_bool() == true);
  CHECK_FALSE(status_json(counts_only(testing::full_snapshot())).contains("4711"));  // a process id
}

TEST_CASE("counts stay as they are without a token") {
  const Snapshot all = testing::full_snapshot();
  const Snapshot counts = counts_only(all);
  CHECK(metrics_text(counts) == metrics_text(all));
  CHECK(counts.coordinator->jobs[0].members.size() == all.coordinator->jobs[0].members.size());
  CHECK(counts.coordinator->jobs[0].failures[1].rank == 5);
  CHECK(counts.coordinator->jobs[0].hang.last->ranks == std::vector<int>{5});
}

TEST_CASE("no label of a metric and no line of readiness has a name or a text without a token") {
  Snapshot marked = with_marked_texts();
  CHECK_FALSE(metrics_text(counts_only(marked)).contains("MARK"));
  marked.node->activity = NodeActivity::kWaiting;
  CHECK(readiness(marked.node).line.contains("MARK"));
  CHECK(readiness(counts_only(marked).node).line == "waiting");
}

TEST_CASE("of a job without a secret this host sees all, and others counts, whatever they send") {
  const AccessRules access{};
  for (const char* own : {"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"})
    CHECK(view_of(access, "", own) == View::kAll);
  for (const char* other : {"10.0.0.7", "fd77::2", "::ffff:10.0.0.7", "", "128.0.0.1"}) {
    CAPTURE(other);
    CHECK(view_of(access, "", other) == View::kCounts);
    CHECK(view_of(access, "Bearer x", other) == View::kCounts);
  }
}

TEST_CASE("of a job with a secret all is seen by its key, counts without one, and nothing by another, from wherever") {
  const AccessRules access{.key = "k3y"};
  for (const char* peer : {"127.0.0.1", "10.0.0.7", ""}) {
    CHECK(view_of(access, "Bearer k3y", peer) == View::kAll);
    CHECK(view_of(access, "", peer) == View::kCounts);
    for (const char* wrong : {"Bearer", "Bearer k3", "Bearer k3y2", "Basic k3y"})
      CHECK(view_of(access, wrong, peer) == View::kRefused);
  }
}

TEST_CASE("open access shows all to everybody") {
  CHECK(view_of({.are_open = true}, "", "10.0.0.7") == View::kAll);
  CHECK(view_of({.key = "k3y", .are_open = true}, "", "10.0.0.7") == View::kAll);
}

TEST_CASE("where the coordinator is learns whoever may see all, and without a secret everybody") {
  const AccessRules secret{.key = "k3y"};
  CHECK(may_be_led(secret, View::kAll));
  CHECK_FALSE(may_be_led(secret, View::kCounts));
  CHECK_FALSE(may_be_led(secret, View::kRefused));
  CHECK(may_be_led({}, View::kAll));
  CHECK(may_be_led({}, View::kCounts));
}

TEST_CASE("four paths are served, whole and in small letters") {
  CHECK(page_at("/healthz") == Page::kHealth);
  CHECK(page_at("/readyz") == Page::kReady);
  CHECK(page_at("/status") == Page::kStatus);
  CHECK(page_at("/metrics") == Page::kMetrics);
  for (const char* other : {"/", "/status/", "/Status", "/metricsx", "status", ""}) CHECK(!page_at(other));
}

TEST_CASE("only the whole token opens, by the scheme Bearer in any case") {
  CHECK(has_token("Bearer s3cret", "s3cret"));
  CHECK(has_token("bEARER   s3cret ", "s3cret"));
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Bearer s3crett3cret",
                            "Bearer s3crets3cret", "Basic s3cret", "s3cret", "Bearer S3cret"}) {
    CAPTURE(wrong);
    CHECK(!has_token(wrong, "s3cret"));
  }
  CHECK(!has_token("Bearer ", ""));  // a job without one
}

TEST_CASE("a node is ready only while its workers run, and says what it waits for") {
  Node node{.activity = NodeActivity::kWaiting, .waits_for = "waiting for nodes: 1 of 2 are here"};
  CHECK(!readiness(node).ready);
  CHECK(readiness(node).line == "waiting: waiting for nodes: 1 of 2 are here");
  node = {.activity = NodeActivity::kRunning, .round = 3};
  CHECK(readiness(node).ready);
  CHECK(readiness(node).line == "the workers of round 3 run");
  for (const NodeActivity other : {NodeActivity::kStandby, NodeActivity::kPreparing, NodeActivity::kChecking,
                                   NodeActivity::kSucceeded, NodeActivity::kStopping, NodeActivity::kEnded}) {
    CHECK(!readiness(Node{.activity = other}).ready);
  }
  CHECK(readiness(std::nullopt).ready);
}
