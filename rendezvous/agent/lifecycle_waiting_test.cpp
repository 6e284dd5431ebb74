#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "rendezvous/agent/lifecycle.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

// A node whose four workers, of ranks 4 to 7, run.
struct Running {
  explicit Running(NodeSettings settings = {})
      : life([&] {
          settings.local_world_size = 4;
          return settings;
        }()) {
    life.on_event(FromCoordinator{PrepareRound{0, 0, 3, {0, 2, 4, 8, 4, 8}, ""}}, 0);
    life.on_event(StoreOpened{{"127.0.0.1", 4000}}, 0);
    life.on_event(FromCoordinator{RunWorkers{0, {"127.0.0.1", 4000}}}, 0);
    for (int rank = 0; rank < 4; ++rank) life.on_event(WorkerStarted{rank, 100 + rank}, 0);
  }
  void on(const Event& event, std::int64_t now_ms) { life.on_event(event, now_ms); }
  void exit(int local_rank, std::int64_t now_ms, int code = 0) {
    on(WorkerExited{local_rank, {.code = code}, now_ms}, now_ms);
  }
  std::string what() const { return life.waiting() ? life.waiting()->what : "nothing"; }

  Lifecycle life;
};

}  // namespace

TEST_CASE("workers that run are nothing to wait for") {
  Running node;
  CHECK(!node.life.waiting());
}

TEST_CASE("a stop by a signal is waited for until SIGKILL, by a user who looks on and can hurry it") {
  Running node({.terminated_timeout_ms = 25'000});
  node.on(SignalReceived{SIGTERM}, 7000);
  const auto waiting = node.life.waiting();
  REQUIRE(waiting);
  CHECK(waiting->what == "stopping on SIGTERM: waiting for 4 workers to end (ranks 4-7)");
  CHECK(waiting->since_ms == 7000);
  CHECK(waiting->until_ms == 32'000);
  CHECK(waiting->at_end == "killed");
  CHECK(waiting->hint == "press Ctrl-C again to kill now");
  CHECK(waiting->by_user);
  CHECK(waiting->unusual);
}

TEST_CASE("who has ended is waited for no more, and the wait goes on from where it began") {
  Running node;
  node.on(SignalReceived{SIGTERM}, 7000);
  node.exit(1, 8000, 1);
  CHECK(node.what() == "stopping on SIGTERM: waiting for 3 workers to end (ranks 4, 6-7)");
  CHECK(node.life.waiting()->since_ms == 7000);
  for (const int rank : {0, 2}) node.exit(rank, 9000);
  CHECK(node.what() == "stopping on SIGTERM: waiting for 1 worker to end (rank 7)");
  node.exit(3, 9000);
  CHECK(node.what() == "stopping on SIGTERM: waiting for processes that workers left running");
  node.on(AllGone{}, 9500);
  CHECK(!node.life.waiting());
}

TEST_CASE("a stop that a failure has caused names it, and Ctrl-C would not hurry it") {
  Running node({.shutdown_timeout_ms = 30'000});
  node.exit(2, 1000, 3);
  const auto waiting = node.life.waiting();
  REQUIRE(waiting);
  CHECK(waiting->what == "rank 6 failed: waiting for 3 workers to end (ranks 4-5, 7)");
  CHECK(waiting->until_ms == 31'000);
  CHECK(waiting->hint.empty());
  CHECK(!waiting->by_user);
}

TEST_CASE("Ctrl-C is no remedy where it is handed to the workers") {
  Running node({.forward_signals = {2}});
  node.on(SignalReceived{SIGTERM}, 0);
  CHECK(node.life.waiting()->hint.empty());
}

TEST_CASE("what does not end when it is killed is waited for from then on, by its name once that is known") {
  Running node({.stuck_timeout_ms = 5'000});
  node.on(SignalReceived{SIGTERM}, 0);
  node.on(TimerFired{}, 25'000);
  CHECK(node.what() == "sent SIGKILL: waiting for 4 workers to end (ranks 4-7)");
  CHECK(node.life.waiting()->since_ms == 25'000);
  node.on(TimerFired{}, 26'000);
  node.on(SurvivorsNamed{"process 7 (python, state D)"}, 26'000);
  CHECK(node.what() == "sent SIGKILL: waiting for process 7 (python, state D)");
  CHECK(node.life.waiting()->until_ms == 30'000);
  CHECK(node.life.waiting()->at_end == "giving up");
}

TEST_CASE("what workers have left behind is waited for after success") {
  Running node;
  for (int rank = 0; rank < 4; ++rank) node.exit(rank, 10);
  CHECK(!node.life.waiting());
  node.on(FromCoordinator{EndJob{{.outcome = JobResult::Outcome::kSucceeded}}}, 20);
  CHECK(!node.life.waiting());  // leftover processes may end by themselves first
  node.on(BackgroundFound{"process 7 (aws)"}, 120);
  CHECK(node.what() == "all workers have ended: waiting for processes that workers left running");
}

TEST_CASE("a log directory that does not answer is waited for as long as it is given") {
  Lifecycle life({.logs = true});
  life.on_event(FromCoordinator{PrepareRound{0, 0, 0, {0, 1, 0, 1, 0, 1}, ""}}, 3000);
  const auto waiting = life.waiting();
  REQUIRE(waiting);
  CHECK(waiting->what == "waiting for the log directory");
  CHECK(waiting->until_ms == 5000);
  life.on_event(LogsOpened{0}, 3500);
  CHECK(!life.waiting());
}

TEST_CASE("a check is waited for: in words where it is, and whether this node is done") {
  Lifecycle life({});
  life.on_event(FromCoordinator{PrepareRound{0, 0, 3, {0, 2, 1, 2, 1, 2}, ""}}, 500);
  CHECK(!life.waiting());
  life.on_event(FromCoordinator{RunCheck{0, 0, "{}"}}, 1000);
  CHECK(life.waiting()->what == "check before training: nodes test themselves");
  life.on_event(NodeChecked{0, 0, "{}"}, 2000);
  CHECK(life.waiting()->what ==
        "check before training: nodes test themselves; this node is done, others are still testing");
  life.on_event(FromCoordinator{RunCheck{0, 1, "{}"}}, 3000);
  CHECK(life.waiting()->what == "check before training: nodes test their links, phase 1");
  CHECK(life.waiting()->since_ms == 1000);
  CHECK(!life.waiting()->until_ms);
  life.on_event(FromCoordinator{RunWorkers{0, {"127.0.0.1", 4000}}}, 4000);
  CHECK(!life.waiting());
}
