#include "rendezvous/agent/leave_signals.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace elastic;
using namespace elastic::agent;

namespace {

using Meaning = LeaveSignals::Meaning;

constexpr std::int64_t kWorker = 4711;

}  // namespace

TEST_CASE("the first signal tells the node to leave, and it is the one that the job's other nodes hear of") {
  for (const std::int64_t worker : {std::int64_t{0}, kWorker}) {
    LeaveSignals signals(false, false);
    CHECK(!signals.has_come());
    CHECK(signals.signal() == 0);
    CHECK(signals.on_signal({SIGHUP, worker}, 1000) == Meaning::kLeave);
    CHECK(signals.on_signal({SIGTERM, worker}, 1001) == Meaning::kMore);
    CHECK(signals.has_come());
    CHECK(signals.signal() == SIGHUP);
  }
}

TEST_CASE("a later SIGINT or SIGTERM insists if a second has passed since the first one from outside") {
  LeaveSignals signals(false, false);
  signals.on_signal({SIGTERM}, 1000);
  CHECK(signals.on_signal({SIGTERM}, 1999) == Meaning::kMore);
  CHECK(signals.on_signal({SIGINT}, 1999) == Meaning::kMore);
  CHECK(signals.on_signal({SIGTERM}, 2000) == Meaning::kInsists);
  CHECK(signals.on_signal({SIGINT}, 2000) == Meaning::kInsists);
  CHECK(signals.on_signal({SIGHUP}, 2000) == Meaning::kMore);
}

TEST_CASE("a second SIGTERM means nothing where its sender signals the workers as well; SIGINT is the user's") {
  LeaveSignals signals(true, false);
  signals.on_signal({SIGTERM}, 0);
  CHECK(signals.on_signal({SIGTERM}, 5000) == Meaning::kMore);
  CHECK(signals.on_signal({SIGINT}, 5000) == Meaning::kInsists);
}

TEST_CASE("a worker's signal never insists, and what a user repeats is counted from the user's own first one") {
  LeaveSignals signals(false, false);
  CHECK(signals.on_signal({SIGTERM, kWorker}, 0) == Meaning::kLeave);
  CHECK(signals.on_signal({SIGINT, kWorker}, 5000) == Meaning::kMore);
  CHECK(signals.on_signal({SIGINT}, 6000) == Meaning::kMore);
  CHECK(signals.on_signal({SIGINT, kWorker}, 9000) == Meaning::kMore);
  CHECK(signals.on_signal({SIGINT}, 9000) == Meaning::kInsists);
}

TEST_CASE("the first SIGTERM from outside limits the time, whatever came before it") {
  LeaveSignals signals(false, false);
  CHECK(!signals.is_first_termination({SIGINT}));
  CHECK(!signals.is_first_termination({SIGTERM, kWorker}));
  CHECK(!signals.terminated());
  CHECK(signals.is_first_termination({SIGTERM}));
  CHECK(signals.terminated());
  CHECK(!signals.is_first_termination({SIGTERM}));
}

TEST_CASE("a user who has asked for the end is told how to hurry it, unless SIGINT goes to the workers") {
  for (const bool forwarded : {true, false}) {
    LeaveSignals signals(false, forwarded);
    Waiting waiting;
    signals.on_signal({SIGTERM, kWorker}, 0);
    signals.explain(waiting);
    CHECK(!waiting.by_user);
    CHECK(waiting.hint.empty());
    signals.on_signal({SIGTERM}, 0);
    signals.explain(waiting);
    CHECK(waiting.by_user);
    CHECK(waiting.hint == (forwarded ? "" : "press Ctrl-C again to kill now"));
  }
}

TEST_CASE("an operator's order counts once, and not as a signal that another one could insist on") {
  LeaveSignals signals(false, false);
  CHECK(signals.take_order());
  CHECK(!signals.take_order());
  CHECK(signals.signal() == SIGTERM);
  CHECK(signals.message() == protocol::NodeLeaves{.signal = SIGTERM, .ordered = true});
  CHECK(signals.reason() == "an operator has drained this node");
  CHECK(!signals.terminated());
  CHECK(signals.on_signal(SignalReceived{SIGTERM}, 60'000) == LeaveSignals::Meaning::kMore);
  CHECK(signals.is_first_termination(SignalReceived{SIGTERM}));
  CHECK(signals.on_signal(SignalReceived{SIGTERM}, 62'000) == LeaveSignals::Meaning::kInsists);

  LeaveSignals scheduler(false, false);
  CHECK(scheduler.take_order(true));
  CHECK(!scheduler.take_order());
  CHECK(scheduler.message() == protocol::NodeLeaves{.signal = SIGTERM, .ordered = true, .by_scheduler = true});
  CHECK(scheduler.name() == "the scheduler's order");
  CHECK(scheduler.reason() == "the scheduler has drained this node");

  LeaveSignals before(false, false);
  before.on_signal(SignalReceived{SIGINT}, 0);
  CHECK(!before.take_order());
  CHECK(before.message() == protocol::NodeLeaves{.signal = SIGINT});
  CHECK(before.reason() == "stopped by SIGINT");
}
