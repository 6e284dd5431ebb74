#include "rendezvous/agent/narrator.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

constexpr int kTerm = 15;
constexpr int kKill = 9;

struct Told {
  explicit Told(std::string endpoint = "")
      : narrator({.run_id = "night",
                  .title = "t.py",
                  .endpoint = std::move(endpoint),
                  .local_world_size = 2,
                  .max_restarts = 3,
                  .logs = true}) {}

  // Each as "event: text", and the fields of the last.
  std::vector<std::string> take(const Happenings& happenings) {
    std::vector<std::string> out;
    for (const LogEvent& happening : happenings) {
      out.push_back(std::string(happening.event) + ": " + happening.text);
      fields = happening.fields.dump();
      level = happening.level;
    }
    return out;
  }
  std::vector<std::string> happened(const Event& event, std::int64_t now_ms = 0) {
    return take(narrator.happened(event, now_ms));
  }
  std::vector<std::string> decided(const Effect& effect, std::int64_t now_ms = 0) {
    return take(narrator.decided(effect, now_ms));
  }

  Narrator narrator;
  std::string fields;
  LogEvent::Level level{};
};

using Texts = std::vector<std::string>;

const PrepareRound kRound{.round = 4, .restart_count = 1, .max_restarts = 3, .place = {1, 2, 2, 4, 2, 4}};

}  // namespace

TEST_CASE("a round is told from its preparation to its last process, with what programs need to know") {
  Told told;
  CHECK(told.happened(FromCoordinator{kRound}) ==
        Texts{"round_prepared: round 4: prepared, restart 1 of 3; node 1 of 2, ranks 2-3 of 4"});
  CHECK(told.fields ==
        R"({"round":4,"restart_count":1,"node_rank":1,"node_count":2,"base_rank":2,"world_size":4,"reason":""})");
  CHECK(told.happened(StoreOpened{{"10.0.0.1", 4000}}) ==
        Texts{"store_open: round 4: the worker store is at 10.0.0.1:4000"});
  CHECK(told.happened(LogsOpened{4}) == Texts{"logs_open: round 4: log directories are there"});
  CHECK(told.decided(StartWorkers{kRound, {"10.0.0.1", 4000}}) == Texts{"round_began: round 4: begins on this node"});
  CHECK(told.fields == R"({"round":4,"store_address":"10.0.0.1","store_port":4000})");
  CHECK(told.happened(WorkerStarted{0, 70}, 100) == Texts{"worker_started: round 4: rank 2 started, pid 70"});
  CHECK(told.happened(WorkerStarted{1, 71}, 110) == Texts{"worker_started: round 4: rank 3 started, pid 71",
                                                          "workers_started: round 4: ranks 2-3 started, pids 70 71"});
  CHECK(told.happened(WorkerExited{1, {.signal = kKill, .core_dumped = true}}, 610) ==
        Texts{"worker_exited: round 4: rank 3 was killed by SIGKILL (core dumped)"});
  CHECK(told.fields == R"({"round":4,"rank":3,"local_rank":1,"pid":71,"exit_code":-9,"signal":"SIGKILL",)"
                       R"("core_dumped":true,"stopped_by_us":false,"milliseconds":500})");
  CHECK(told.decided(SignalWorkers{kTerm}) == Texts{"signal_sent: SIGTERM to the workers"});
  CHECK(told.decided(AwaitAllGone{}, 610) ==
        Texts{"stop: round 4: stopping what is left by SIGTERM: rank 3 was killed by SIGKILL (core dumped)"});
  CHECK(told.decided(SignalWorkers{kKill}) == Texts{"workers_killed: round 4: SIGKILL to what is left"});
  told.happened(WorkerExited{0, {.signal = kTerm}}, 700);
  CHECK(told.fields.contains(R"("stopped_by_us":true,"milliseconds":600)"));
  told.happened(AllGone{}, 710);
  CHECK(told.decided(CloseStore{}, 710) ==
        Texts{"workers_gone: round 4: no process of its workers is left, 100 ms after the stop"});
  CHECK(told.decided(Finish{{.outcome = Verdict::Outcome::kFailed, .reason = "r", .round = 4, .restarts_used = 3}}) ==
        Texts{"verdict: the job has failed; 3 of 3 restarts were used"});
  CHECK(told.fields == R"({"outcome":"failed","round":4,"restarts_used":3,"reason":"r"})");
}

TEST_CASE("workers that are killed because the lease is over are gone so long after that, whatever was told before") {
  Told told;
  told.happened(FromCoordinator{kRound}, 1000);
  told.happened(FromCoordinator{StopWorkers{.round = 3}}, 2000);  // of another round
  told.decided(Warn{"the lease is over, as the user is told", "lease_over"}, 6000);
  told.decided(SignalWorkers{kKill}, 6000);
  CHECK(told.decided(AwaitAllGone{}, 6000) ==
        Texts{"stop: round 4: stopping what is left by SIGKILL: the lease is over"});
  told.happened(AllGone{}, 6008);
  CHECK(told.decided(CloseStore{}, 6008) ==
        Texts{"workers_gone: round 4: no process of its workers is left, 8 ms after the stop"});
}

TEST_CASE("a wait for others is told when it begins and when it ends, and not in between") {
  Told told("host0:29400");
  const Waiting for_nodes{.what = "waiting for nodes: 1 of 2 is here", .for_others = true};
  CHECK(told.take(told.narrator.waits_for(Waiting{.what = "waiting for the log directory"}, 5)).empty());
  CHECK(told.take(told.narrator.waits_for(for_nodes, 10)) == Texts{"waiting_began: waiting for nodes: 1 of 2 is here"});
  CHECK(told.take(told.narrator.waits_for(for_nodes, 300)).empty());
  CHECK(told.take(told.narrator.waits_for({}, 2010)) == Texts{"waiting_ended: waited for others for 2000 ms"});
  CHECK(told.fields == R"({"milliseconds":2000})");
  CHECK(told.take(told.narrator.waits_for({}, 2020)).empty());
}

TEST_CASE("a coordinator that is found, lost and back is told, as a warning where training depends on it") {
  Told told("host0:29400");
  const auto is = [&](bool reached, bool matters) {
    return told.take(told.narrator.coordinator_is(reached, matters, "it was reset"));
  };
  CHECK(is(false, false).empty());
  CHECK(is(true, false) == Texts{"coordinator_found: the coordinator at host0:29400 is found"});
  CHECK(is(true, true).empty());
  CHECK(is(false, false) == Texts{"coordinator_left: no session with the coordinator at host0:29400: it was reset"});
  CHECK(told.level == LogEvent::Level::kDebug);
  CHECK(is(true, true) == Texts{"coordinator_found: the coordinator at host0:29400 is found"});
  CHECK(is(false, true) ==
        Texts{"coordinator_lost: the coordinator at host0:29400 is lost: it was reset; looking for it "
              "while the workers go on, until their lease is over"});
  CHECK(told.level == LogEvent::Level::kWarning);
  CHECK(is(true, true) == Texts{"coordinator_back: the coordinator at host0:29400 is back"});
}

TEST_CASE("a node that stands by, or is not taken, is told once, and why") {
  Told told("host0:29400");
  const FromCoordinator stands_by{Awaiting{.what = "round 3 runs with all the nodes that it may have"}};
  CHECK(told.happened(stands_by) ==
        Texts{"standby: this node stands by: round 3 runs with all the nodes that it may have"});
  CHECK(told.happened(stands_by).empty());
  CHECK(told.happened(FromCoordinator{Awaiting{.here = 1, .least = 2, .most = 2}}).empty());
  CHECK(told.happened(FromCoordinator{Rejected{Rejected::Why::kExcluded, "it is faulty", {}}}) ==
        Texts{"rejected: the coordinator does not take this node: it is faulty"});
  CHECK(told.fields == R"({"reason":"it is faulty","comes_again":false})");
}

TEST_CASE("the phases of a node's check are told with what it has found") {
  Told told;
  CHECK(told.decided(CheckNode{2, 1, "order"}) == Texts{"check_began: round 2: the check of this node begins phase 1"});
  CHECK(told.happened(NodeChecked{2, 1, "passed"}) ==
        Texts{"check_answered: round 2: the check of this node is done with phase 1"});
  CHECK(told.fields == R"({"round":2,"phase":1,"result":"passed"})");
}
