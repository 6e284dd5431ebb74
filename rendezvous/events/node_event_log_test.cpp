#include "rendezvous/events/node_event_log.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::events;
using namespace elastic::protocol;

namespace {

struct Told {
  explicit Told(std::string endpoint = "")
      : node_event_log({.run_id = "night",
                        .title = "t.py",
                        .endpoint = std::move(endpoint),
                        .local_world_size = 2,
                        .max_restarts = 3,
                        .logs = true}) {}

  // Each event as "event: text"; keeps the fields and the level of the last one.
  std::vector<std::string> words(const LogEvents& events) {
    std::vector<std::string> out;
    for (const LogEvent& event : events) {
      out.push_back(std::string(event.event) + ": " + event.text);
      fields = event.fields.dump();
      level = event.level;
    }
    return out;
  }
  std::vector<std::string> on(const Event& event, std::int64_t now_ms = 0) {
    return words(node_event_log.on_event(event, now_ms));
  }
  std::vector<std::string> on(const Effect& effect, std::int64_t now_ms = 0) {
    return words(node_event_log.on_effect(effect, now_ms));
  }

  NodeEventLog node_event_log;
  std::string fields;
  LogEvent::Level level{};
};

using Texts = std::vector<std::string>;

const PrepareRound kRound{.round = 4, .restart_count = 1, .max_restarts = 3, .place = {1, 2, 2, 4, 2, 4}};

}  // namespace

TEST_CASE("a round is told from its preparation to its last process, with what programs need to know") {
  Told told;
  CHECK(told.on(FromCoordinator{kRound}) ==
        Texts{"round_prepared: round 4: prepared, restart 1 of 3; node 1 of 2, ranks 2-3 of 4"});
  CHECK(told.fields ==
        R"({"round":4,"restart_count":1,"node_rank":1,"node_count":2,"base_rank":2,"world_size":4,"reason":""})");
  CHECK(told.on(StoreOpened{{"10.0.0.1", 4000}}) == Texts{"store_open: round 4: the worker store is at 10.0.0.1:4000"});
  CHECK(told.on(LogsOpened{4}) == Texts{"logs_open: round 4: log directories are ready"});
  CHECK(told.on(StartWorkers{kRound, {"10.0.0.1", 4000}}, 90) ==
        Texts{"round_began: round 4: starting the workers of this node"});
  CHECK(told.fields == R"({"round":4,"store_address":"10.0.0.1","store_port":4000})");
  CHECK(told.on(WorkerStarted{0, 70}, 100) == Texts{"worker_started: round 4: rank 2 started, pid 70"});
  CHECK(told.on(WorkerStarted{1, 71}, 110) == Texts{"worker_started: round 4: rank 3 started, pid 71",
                                                    "workers_started: round 4: ranks 2-3 started, pids 70 71"});
  CHECK(told.fields == R"({"round":4,"base_rank":2,"workers":2,"start":"fresh","milliseconds":20,)"
                       R"("spared_cpu_ms":null})");
  CHECK(told.on(WorkerExited{1, {.signal = SIGKILL, .core_dumped = true}}, 610) ==
        Texts{"worker_exited: round 4: rank 3 was killed by SIGKILL (core dumped)"});
  CHECK(told.fields == R"({"round":4,"rank":3,"local_rank":1,"pid":71,"exit_code":-9,"signal":"SIGKILL",)"
                       R"("core_dumped":true,"stopped_by_us":false,"milliseconds":500})");
  CHECK(told.on(SignalWorkers{SIGTERM}) == Texts{"signal_sent: sending SIGTERM to the workers"});
  CHECK(told.on(AwaitAllGone{}, 610) ==
        Texts{"stop: round 4: stopping workers with SIGTERM: rank 3 was killed by SIGKILL (core dumped)"});
  CHECK(told.on(SignalWorkers{SIGKILL}) ==
        Texts{"workers_killed: round 4: sending SIGKILL to the processes that are left"});
  told.on(WorkerExited{0, {.signal = SIGTERM}}, 700);
  CHECK(told.fields.contains(R"("stopped_by_us":true,"milliseconds":600)"));
  told.on(AllGone{}, 710);
  CHECK(told.on(CloseStore{}, 710) ==
        Texts{"workers_gone: round 4: all its processes have ended, 100 ms after the stop"});
  CHECK(told.on(Finish{{.outcome = JobResult::Outcome::kFailed, .reason = "r", .round = 4, .restarts_used = 3}}) ==
        Texts{"verdict: the job has failed; 3 of 3 restarts were used"});
  CHECK(told.fields == R"({"outcome":"failed","round":4,"restarts_used":3,"reason":"r"})");
}

TEST_CASE("warm workers are told as such, with the time until they had their ranks and what they were spared") {
  Told told;
  told.on(FromCoordinator{kRound}, 90);
  told.on(StartWorkers{kRound, {"10.0.0.1", 4000}}, 100);
  told.on(WorkerStarted{0, 70, WorkerStart::kWarm, 2230}, 112);
  CHECK(told.on(WorkerStarted{1, 71, WorkerStart::kWarm, 2230}, 112).back() ==
        "workers_started: round 4: ranks 2-3 started warm in 12 ms, each without 2230 ms of processor time, "
        "pids 70 71");
  CHECK(told.fields == R"({"round":4,"base_rank":2,"workers":2,"start":"warm","milliseconds":12,)"
                       R"("spared_cpu_ms":2230})");
}

TEST_CASE("a round that an error file stops is told with its rank, which is not stopped") {
  Told told;
  told.on(FromCoordinator{kRound});
  told.on(WorkerStarted{0, 70});
  told.on(WorkerStarted{1, 71});
  told.on(ErrorFileWritten{4, 1});
  CHECK(told.on(SignalWorkers{.signal = SIGTERM, .spared = 1}) ==
        Texts{"error_file: round 4: rank 3 has written an error file, and ends",
              "signal_sent: sending SIGTERM to the workers"});
  CHECK(told.on(AwaitAllGone{}) ==
        Texts{"stop: round 4: stopping workers with SIGTERM: rank 3 has written an error file"});
  told.on(WorkerExited{0, {.signal = SIGTERM}});
  CHECK(told.fields.contains(R"("stopped_by_us":true)"));
  told.on(WorkerExited{1, {.code = 1}});
  CHECK(told.fields.contains(R"("stopped_by_us":false)"));
}

TEST_CASE("the ranks that got a signal before their helpers are named") {
  Told told;
  told.on(FromCoordinator{kRound});
  CHECK(told.words(told.node_event_log.signalled_alone(SIGTERM, {0, 1})) ==
        Texts{"signalled_alone: round 4: ranks 2-3 handle SIGTERM and got it before their helpers"});
  CHECK(told.fields == R"({"round":4,"signal":"SIGTERM","ranks":[2,3]})");
  CHECK(told.level == LogEvent::Level::kInfo);
  CHECK(told.words(told.node_event_log.signalled_alone(SIGUSR1, {1})) ==
        Texts{"signalled_alone: round 4: rank 3 handles SIGUSR1 and got it before its helpers"});
  CHECK(told.node_event_log.signalled_alone(SIGTERM, {}).empty());
}

TEST_CASE("workers that are killed because the lease is over are gone so long after that, whatever was told before") {
  Told told;
  told.on(FromCoordinator{kRound}, 1000);
  told.on(FromCoordinator{StopWorkers{.round = 3}}, 2000);  // an order for another round
  told.on(Warn{"the lease is over, as the user is told", "lease_over"}, 6000);
  told.on(SignalWorkers{SIGKILL}, 6000);
  CHECK(told.on(AwaitAllGone{}, 6000) == Texts{"stop: round 4: killing workers: the lease is over"});
  told.on(AllGone{}, 6008);
  CHECK(told.on(CloseStore{}, 6008) ==
        Texts{"workers_gone: round 4: all its processes have ended, 8 ms after the stop"});
}

TEST_CASE("a stop names its cause: the parent process that was killed, the coordinator's order, or success") {
  Told told;
  told.on(FromCoordinator{kRound});
  told.on(GuardianLost{5269});
  told.on(SignalWorkers{SIGKILL});
  CHECK(told.on(AwaitAllGone{}) == Texts{"stop: round 4: killing workers: parent process 5269 was killed"});
  CHECK(told.fields == R"({"round":4,"signal":"SIGKILL","reason":"parent process 5269 was killed"})");
  told.on(FromCoordinator{kRound});
  told.on(FromCoordinator{StopWorkers{.round = 4}});
  told.on(SignalWorkers{SIGTERM});
  CHECK(told.on(AwaitAllGone{}) ==
        Texts{"stop: round 4: stopping workers with SIGTERM: the coordinator stopped the round"});
  told.on(FromCoordinator{kRound});
  told.on(FromCoordinator{StopWorkers{.round = 4, .hangs = true}});
  told.on(SignalWorkers{SIGTERM});
  CHECK(told.on(AwaitAllGone{}) == Texts{"stop: round 4: stopping workers with SIGTERM: the round hangs"});
  told.on(FromCoordinator{kRound});
  told.on(FromCoordinator{EndJob{}});
  told.on(BackgroundFound{});
  told.on(SignalWorkers{SIGTERM});
  CHECK(told.on(AwaitAllGone{}) ==
        Texts{"stop: round 4: sending SIGTERM to any processes left: all workers succeeded"});
}

TEST_CASE("a coordinator in this process is neither found nor lost") {
  Told told;
  CHECK(told.node_event_log.coordinator_is(true, false, "", 5'000).empty());
  CHECK(told.node_event_log.coordinator_is(false, true, "", 5'000).empty());
}

TEST_CASE("a wait for others is told when it begins and when it ends, and not in between") {
  Told told("host0:29400");
  const Waiting for_nodes{.what = "1 node present, 2 needed", .for_others = true};
  CHECK(told.words(told.node_event_log.waits_for(Waiting{.what = "waiting for the log directory"}, 5)).empty());
  CHECK(told.words(told.node_event_log.waits_for(for_nodes, 10)) == Texts{"waiting_began: 1 node present, 2 needed"});
  CHECK(told.words(told.node_event_log.waits_for(for_nodes, 300)).empty());
  CHECK(told.words(told.node_event_log.waits_for({}, 2010)) == Texts{"waiting_ended: waited for 2000 ms"});
  CHECK(told.fields == R"({"milliseconds":2000})");
  CHECK(told.words(told.node_event_log.waits_for({}, 2020)).empty());
}

TEST_CASE("a coordinator that is found, lost and back is told, as a warning where training depends on it") {
  Told told("host0:29400");
  const auto is = [&](bool reached, bool matters) {
    return told.words(told.node_event_log.coordinator_is(reached, matters, "it was reset", 5'000));
  };
  CHECK(is(false, false).empty());
  CHECK(is(true, false) == Texts{"coordinator_found: connected to the coordinator at host0:29400"});
  CHECK(is(true, true).empty());
  CHECK(is(false, false) == Texts{"coordinator_left: not connected to the coordinator at host0:29400: it was reset"});
  CHECK(told.level == LogEvent::Level::kDebug);
  CHECK(is(true, true) == Texts{"coordinator_found: connected to the coordinator at host0:29400"});
  CHECK(
      is(false, true) ==
      Texts{"coordinator_lost: lost the coordinator at host0:29400: it was reset; reconnecting while the workers keep "
            "running, until their lease is over"});
  CHECK(told.level == LogEvent::Level::kWarning);
  told.on(AwaitAllGone{});
  CHECK(is(true, true) == Texts{"coordinator_back: reconnected to the coordinator at host0:29400"});
  CHECK(is(false, true) == Texts{"coordinator_lost: lost the coordinator at host0:29400: it was reset; reconnecting"});
}

TEST_CASE("a node with another loss timeout than the coordinator's is told which one holds, once for each") {
  NodeEventLog node_event_log({.run_id = "job", .title = "t.py", .endpoint = "host0:29400", .loss_timeout_ms = 20'000});
  const auto warnings = [&](bool reached, std::int64_t loss_timeout_ms) {
    std::vector<std::string> out;
    for (const LogEvent& event : node_event_log.coordinator_is(reached, false, "it was reset", loss_timeout_ms)) {
      if (event.level == LogEvent::Level::kWarning) out.push_back(format("{} {}", event.text, event.fields.dump()));
    }
    return out;
  };
  CHECK(warnings(true, 20'000).empty());
  CHECK(warnings(false, 20'000).empty());
  CHECK(warnings(true, 5'000) ==
        std::vector<std::string>{
            "loss_timeout: this node was given 20 s, and the coordinator has 5 s, which holds; give the same to the "
            "coordinator and to all nodes "
            R"({"endpoint":"host0:29400","given_ms":20000,"holds_ms":5000})"});
  CHECK(warnings(false, 5'000).empty());
  CHECK(warnings(true, 5'000).empty());
  CHECK(warnings(false, 5'000).empty());
  CHECK(warnings(true, 7'000).size() == 1);
  NodeEventLog without({.run_id = "job", .title = "t.py", .endpoint = "host0:29400"});
  CHECK(without.coordinator_is(true, false, "", 7'000).size() == 1);  // coordinator_found
}

TEST_CASE("a node that is on standby, or is not taken, is told once, and why") {
  Told told("host0:29400");
  const FromCoordinator stands_by{Awaiting{.what = "round 3 runs with all the nodes that it may have"}};
  CHECK(told.on(stands_by) == Texts{"standby: round 3 runs with all the nodes that it may have"});
  CHECK(told.on(stands_by).empty());
  CHECK(told.on(FromCoordinator{Awaiting{.here = 1, .least = 2, .most = 2}}).empty());
  CHECK(told.on(FromCoordinator{Rejected{Rejected::Why::kEvicted, "it is faulty", {}}}) ==
        Texts{"rejected: the coordinator rejected this node: it is faulty"});
  CHECK(told.fields == R"({"reason":"it is faulty","comes_again":false})");
}

TEST_CASE("the phases of a node's check are told with what it has found") {
  Told told;
  CHECK(told.on(CheckNode{2, 1, "order"}) == Texts{"check_began: round 2: phase 1 of this node's check begins"});
  CHECK(told.on(NodeChecked{2, 1, "passed"}) == Texts{"check_answered: round 2: phase 1 of this node's check is done"});
  CHECK(told.fields == R"({"round":2,"phase":1,"result":"passed"})");
}

TEST_CASE("progress is told once in a round, with where it was seen") {
  Told told;
  told.on(FromCoordinator{kRound});
  const ProgressMade made{
      NodeProgress{.round = 4, .newest = {.rank = 3, .step = 10, .source = progress::Source::kMegatron}}};
  CHECK(told.on(made) == Texts{"progress_seen: round 4: rank 3 makes progress, at step 10 (megatron)"});
  CHECK(told.fields == R"({"round":4,"rank":3,"step":10,"source":"megatron"})");
  CHECK(told.on(made).empty());
  told.on(FromCoordinator{PrepareRound{.round = 5}});
  CHECK(told.on(made).empty());  // of the round before
  CHECK(told.on(ProgressMade{NodeProgress{.round = 5}}) ==
        Texts{"progress_seen: round 5: a rank of this node makes progress (lines)"});
}
