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
    CHECK(!signals.told());
    CHECK(signals.signal() == 0);
    CHECK(signals.take({SIGHUP, worker}, 1000) == Meaning::kLeave);
    CHECK(signals.take({SIGTERM, worker}, 1001) == Meaning::kMore);
    CHECK(signals.told());
    CHECK(signals.signal() == SIGHUP);
  }
}

TEST_CASE("a later SIGINT or SIGTERM insists if a second has passed since the first one from outside") {
  LeaveSignals signals(false, false);
  signals.take({SIGTERM}, 1000);
  CHECK(signals.take({SIGTERM}, 1999) == Meaning::kMore);
  CHECK(signals.take({SIGINT}, 1999) == Meaning::kMore);
  CHECK(signals.take({SIGTERM}, 2000) == Meaning::kInsists);
  CHECK(signals.take({SIGINT}, 2000) == Meaning::kInsists);
  CHECK(signals.take({SIGHUP}, 2000) == Meaning::kMore);
}

TEST_CASE("a second SIGTERM means nothing where its sender signals the workers as well; SIGINT is the user's") {
  LeaveSignals signals(true, false);
  signals.take({SIGTERM}, 0);
  CHECK(signals.take({SIGTERM}, 5000) == Meaning::kMore);
  CHECK(signals.take({SIGINT}, 5000) == Meaning::kInsists);
}

TEST_CASE("a worker's signal never insists, and what a user repeats is counted from the user's own first one") {
  LeaveSignals signals(false, false);
  CHECK(signals.take({SIGTERM, kWorker}, 0) == Meaning::kLeave);
  CHECK(signals.take({SIGINT, kWorker}, 5000) == Meaning::kMore);
  CHECK(signals.take({SIGINT}, 6000) == Meaning::kMore);
  CHECK(signals.take({SIGINT, kWorker}, 9000) == Meaning::kMore);
  CHECK(signals.take({SIGINT}, 9000) == Meaning::kInsists);
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
    signals.take({SIGTERM, kWorker}, 0);
    signals.explain(waiting);
    CHECK(!waiting.by_user);
    CHECK(waiting.hint.empty());
    signals.take({SIGTERM}, 0);
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
  CHECK(signals.take(SignalReceived{SIGTERM}, 60'000) == LeaveSignals::Meaning::kMore);
  CHECK(signals.is_first_termination(SignalReceived{SIGTERM}));
  CHECK(signals.take(SignalReceived{SIGTERM}, 62'000) == LeaveSignals::Meaning::kInsists);

  LeaveSignals before(false, false);
  before.take(SignalReceived{SIGINT}, 0);
  CHECK(!before.take_order());
  CHECK(before.message() == protocol::NodeLeaves{.signal = SIGINT});
  CHECK(before.reason() == "stopped by SIGINT");
}
