#include "src/status/status_page.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/screen_text.h"
#include "src/base/text.h"
#include "src/status/status_json.h"
#include "src/status/test_snapshot.h"
#include "src/status/viewer.h"

using namespace elastic;
using namespace elastic::status;

namespace {

Json document(const Snapshot& snapshot = testing::full_snapshot()) {
  auto json = Json::parse(status_json(snapshot), "status");
  REQUIRE(json.has_value());
  return *json;
}

}  // namespace

TEST_CASE("the page says who is in the job, its rounds, restarts, standby and failures") {
  const std::string page = status_page(document(), "", 0);
  for (const char* part :
       {"job job: running for 4.0 s\n", "round     3, world size 6, because node 2 was lost\n",
        "nodes     3 in round, 1 standby, 1 kept out; wanted: 2 to 4\n",
        "restarts  3 (2 worker failures, 1 node lost); 2 of 3 charged\n",
        "time      90.5 % in a round (imports and hangs count): waiting 5.0 s, ", "lost work at most 42 s\n",
        "check     3 fit, 1 slow, 0 faulty, 0 undetermined, in 1.2 s; slowest busbw 1.50 GB/s\n",
        "progress  step 118, 2.35 steps/s, 4.0 s ago (rank 5, megatron, train); of 2 ranks rank 1 is the last, 40 s "
        "ago\n",
        "       0  in round     2 workers  node0, hosts the coordinator\n",
        "       1  in round     2 workers  node1, door 10.0.0.1:40123\n", "       -  standby      2 workers  node4\n",
        "    round 1, 1 m 0 s ago: rank 5 exited with code 1\n", "node node0: running\n",
        "rank 0 (pid 4711); rank 1 (pid 4712)", "job before ended: failed: rank 0 exited with code 1\n"}) {
    CAPTURE(part);
    CHECK(page.contains(part));
  }
}

TEST_CASE("with warm workers the page says how the workers were started, what that has saved, and what comes next") {
  Snapshot snapshot = testing::full_snapshot();
  const std::string page = status_page(document(snapshot), "", 0);
  CHECK(page.contains("  start     warm; 4 of 8 workers were started warm, "));
  CHECK(page.contains(", which has spared 9.0 s of processor time\n"));
  CHECK(page.contains("  warm      preparing: 1 of 2 workers wait\n"));
  CHECK(status_page(document(counts_only(snapshot)), "", 0).contains("  warm      preparing\n"));
  snapshot.node->warm = {.state = Warmth::kReady, .waiting = 2};
  CHECK(status_page(document(snapshot), "", 0).contains("  warm      ready: 2 workers wait for the next round\n"));
  snapshot.node->warm = {};
  CHECK(!status_page(document(snapshot), "", 0).contains("  warm "));
}

TEST_CASE("where no progress is seen the page says what to do, while workers run") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs[0].newest.reset();
  snapshot.coordinator->jobs[0].hang = {};
  snapshot.node->progress.reset();
  const std::string page = status_page(document(snapshot), "", 0);
  CHECK(page.contains("progress  not seen; show elastic-run the steps: "));
  CHECK(page.contains("progress  not seen\n"));
  snapshot.coordinator->jobs[0].phase = JobPhase::kWaiting;
  for (Worker& worker : snapshot.node->workers) worker.running = false;
  CHECK_FALSE(status_page(document(snapshot), "", 0).contains("progress"));
}

TEST_CASE("the page says that a job hangs and who is at fault") {
  Snapshot snapshot = testing::full_snapshot();
  CHECK(
      status_page(document(snapshot), "", 0)
          .contains("  HANG      no progress for 4 m 10 s (limit 1 m 0 s, learned): rank 5 (node node3) is not in the "
                    "collective that others wait in\n"));
  CHECK(status_page(document(counts_only(snapshot)), "", 0)
            .contains("  HANG      no progress for 4 m 10 s (limit 1 m 0 s, learned): rank 5 by rule 7 (behind)\n"));
  CHECK(status_line(document(snapshot), "").starts_with("job job: running, HANGS, round 3; "));
}

TEST_CASE("while no hang is told the page says how long a wait is none, and which hang was the last") {
  Snapshot snapshot = testing::full_snapshot();
  HangLine& hang = snapshot.coordinator->jobs[0].hang;
  hang.state = HangState::kArmed;
  hang.silent_ms = 4000;
  hang.last->is_over = true;
  std::string page = status_page(document(snapshot), "", 0);
  CHECK(page.contains("  hang      none; 4.0 s without progress (limit 1 m 0 s, learned)\n"));
  CHECK(page.contains("  last hang round 3, 3 m 5 s ago, over: rank 5 (node node3) is not in "));
  CHECK_FALSE(page.contains("HANG"));
  CHECK_FALSE(status_line(document(snapshot), "").contains("HANGS"));

  hang = {.state = HangState::kCollecting, .silent_ms = 70'000, .limit_ms = 60'000, .limit_from = "flag"};
  page = status_page(document(snapshot), "", 0);
  CHECK(
      page.contains("  hang      SUSPECTED: no progress for 1 m 10 s (limit 1 m 0 s, flag); evidence is collected\n"));
  CHECK_FALSE(page.contains("last hang"));

  hang = {.state = HangState::kStarting};
  CHECK(status_page(document(snapshot), "", 0)
            .contains("  hang      not watched yet: this round has shown no progress\n"));
  hang = {};
  CHECK_FALSE(status_page(document(snapshot), "", 0).contains("  hang "));
}

TEST_CASE("lines are as long as the terminal is wide") {
  for (const std::size_t columns : {std::size_t{40}, std::size_t{80}, std::size_t{120}}) {
    const std::string page = status_page(document(), "", columns);
    for (const std::string_view line : lines_of(page)) {
      CAPTURE(std::string(line));
      CHECK(character_count(line) <= columns);
    }
  }
}

TEST_CASE("one job of several is shown alone") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs.push_back({.id = "other"});
  const Json json = document(snapshot);
  CHECK(status_page(json, "", 0).contains("job other:"));
  const std::string page = status_page(json, "other", 0);
  CHECK(page.contains("job other:"));
  CHECK(!page.contains("job job:"));
  CHECK(!page.contains("is over"));
  CHECK(has_job(json, "other"));
  CHECK(!has_job(json, "nobody"));
}

TEST_CASE("what others are called does nothing to the terminal") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs[0].members[0].name = "\x1b[31mred\a";
  snapshot.coordinator->jobs[0].failures[0].text = "a\x1b]0;title\x07";
  const std::string page = status_page(document(snapshot), "", 80);
  CHECK(page.find('\x1b') == std::string::npos);
  CHECK(page.find('\a') == std::string::npos);
}

TEST_CASE("a document of another kind, or with members of other kinds, is borne") {
  for (const char* text :
       {"{}", "[]", "1", "{\"format\":1,\"coordinator\":{\"jobs\":[1,{\"run_id\":2,\"nodes\":[]}]},\"node\":7}"}) {
    auto json = Json::parse(text, "status");
    REQUIRE(json.has_value());
    CHECK(!status_page(*json, "", 80).empty());
    CHECK(!status_line(*json, "").empty());
  }
  CHECK(!is_status(*Json::parse("{}", "status")));
  CHECK(is_status(document()));
}

TEST_CASE("for a log there is one line") {
  CHECK(
      status_line(document(), "") ==
      "job job: running, HANGS, round 3; nodes: 3 in round, 1 standby, 1 kept out; restarts: 3; in a round: 90.5 %\n");
  CHECK(status_line(document({}), "") == "no jobs\n");
}

TEST_CASE("what is one is told as one") {
  Snapshot snapshot = testing::full_snapshot();
  Job& job = snapshot.coordinator->jobs[0];
  job.restarts = {0, 1, 2, 1, 0, 3};
  job.members[0].workers = 1;
  job.members_left_out = 1;
  const std::string page = status_page(document(snapshot), "", 0);
  for (const char* part : {"       0  in round     1 worker   node0, hosts",
                           "       1  in round     2 workers  node1, door 10.0.0.1:40123\n", "  and 1 more node\n",
                           "restarts  7 (1 worker failure, 2 nodes lost, 1 membership change, "
                           "3 losses of the coordinator); "}) {
    CAPTURE(part);
    CHECK(page.contains(part));
  }
}

TEST_CASE("a job that runs is told to be in a round, and not that it trains") {
  for (const std::string& text : {status_page(document(), "", 0), status_line(document(), "")})
    CHECK(!text.contains("goodput"));
}

TEST_CASE("a page of counts alone leaves no holes where names were, and says how to see them") {
  const std::string page = status_page(document(counts_only(testing::full_snapshot())), "", 0);
  CAPTURE(page);
  for (const char* part :
       {"round     3, world size 6\n", "       0  in round     2 workers  hosts the coordinator\n",
        "       -  standby      2 workers\n", "    round 2, 4.5 s ago: node lost, node 2\n",
        "    round 1, 1 m 0 s ago: worker failure, rank 5\n", "this node: running\n", "workers   rank 0; rank 1\n",
        "job before ended: failed\n", "\nNames and texts are left out. To see them send the job's token "}) {
    CAPTURE(part);
    CHECK(page.contains(part));
  }
  CHECK_FALSE(page.contains(" \n"));
  CHECK_FALSE(status_page(document(), "", 0).contains("left out"));
}

TEST_CASE("the peer ports of the nodes are found by job, and a coordinator that has moved is named") {
  Snapshot snapshot = testing::full_snapshot();
  snapshot.coordinator->jobs.push_back({.id = "other", .members = {{.name = "node9", .peer_address = "[fd00::9]:1"}}});
  CHECK(peer_addresses(document(snapshot), "job") == std::vector<std::string>{"10.0.0.1:40123"});
  CHECK(peer_addresses(document(snapshot), "") == std::vector<std::string>{"10.0.0.1:40123", "[fd00::9]:1"});
  CHECK(peer_addresses(document({}), "").empty());
  CHECK(status_page(document(snapshot), "", 0).contains("endpoint  node0:29400, connected\n"));
  snapshot.node->coordinator_at = "10.0.0.2:40124";
  CHECK(status_page(document(snapshot), "", 0)
            .contains("endpoint  node0:29400, connected; the coordinator is at 10.0.0.2:40124\n"));
}
