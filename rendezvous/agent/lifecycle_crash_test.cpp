// A node tells the coordinator what identifies a round's first failure.
#include <doctest/doctest.h>

#include <csignal>
#include <optional>

#include "rendezvous/agent/lifecycle.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

const Crash kCrash = {Crash::Kind::kImport, 0x77};

template <class Kind>
std::optional<Kind> find(const Effects& effects) {
  for (const Effect& effect : effects) {
    if (const auto* match = std::get_if<Kind>(&effect)) return *match;
  }
  return {};
}
std::optional<NodeStopped> stopped(const Effects& effects) {
  for (const Effect& effect : effects) {
    const auto* sent = std::get_if<ToCoordinator>(&effect);
    const auto* message = sent == nullptr ? nullptr : std::get_if<NodeStopped>(&sent->message);
    if (message != nullptr) return *message;
  }
  return {};
}

// A node of one worker that may be restarted.
struct Node {
  explicit Node(int max_restarts = 3, bool tells = true, bool finds_deaths = false)
      : max(max_restarts),
        life({.terms = {.max_restarts = max_restarts}, .tells_crashes = tells, .finds_deaths = finds_deaths}) {
    run(0);
  }
  void run(RoundNumber round) {
    from(PrepareRound{.round = round,
                      .restart_count = static_cast<int>(round),
                      .max_restarts = max,
                      .place = {0, 1, 0, 1, 0, 1},
                      .membership = 99});
    from(RunWorkers{round, {"10.0.0.1", 4000}});
    on(WorkerStarted{0, 100});
  }
  Effects on(const Event& event) { return life.on_event(event, now_ms); }
  Effects from(const CoordinatorMessage& message) { return on(FromCoordinator{message}); }
  // The worker ends in this way, and no process of it is left.
  Effects end(ExitStatus exit) {
    on(WorkerExited{0, exit, 7});
    return on(AllGone{});
  }

  int max;
  Lifecycle life;
  std::int64_t now_ms = 0;
};

TEST_CASE("a node whose worker has failed tells what of, once that is found") {
  Node node;
  const Effects gone = node.end({.code = 1});
  CHECK(find<FindCrash>(gone)->round == 0);
  CHECK(find<StartTimer>(gone)->delay_ms == 1000);
  CHECK(!stopped(gone));
  CHECK(!node.life.is_idle());
  CHECK(!node.life.waiting());
  const Effects found = node.on(CrashFound{0, kCrash});
  CHECK(stopped(found)->crash == kCrash);
  CHECK(find<StopTimer>(found));
  CHECK(node.life.is_idle());
  CHECK(node.on(CrashFound{0, kCrash}).empty());
}

TEST_CASE("what is not found in a second is not waited for, and is no word about the next round") {
  Node node;
  node.end({.code = 1});
  node.now_ms = 1000;
  const Effects late = node.on(TimerFired{});
  REQUIRE(stopped(late));
  CHECK(!stopped(late)->crash);
  node.run(1);
  CHECK(!stopped(node.end({.code = 1})));
  CHECK(node.on(CrashFound{0, kCrash}).empty());
  CHECK(!stopped(node.on(CrashFound{1, {}}))->crash);
}

TEST_CASE("a crash of one round is not told of the next") {
  Node node;
  node.end({.code = 1});
  node.on(CrashFound{0, kCrash});
  node.run(1);
  const Effects gone = node.end({.signal = 9});
  REQUIRE(stopped(gone));
  CHECK(!stopped(gone)->crash);
}

TEST_CASE(
    "nothing is looked for where no restart may follow, a signal has ended the worker, or all were told to stop") {
  Node without(0);
  CHECK(stopped(without.end({.code = 1})));
  Node untold(3, false);
  CHECK(stopped(untold.end({.code = 1})));
  Node killed;
  CHECK(stopped(killed.end({.signal = 9})));
  Node told;
  told.from(StopWorkers{0});
  CHECK(stopped(told.end({.code = 1})));
  Node leaving;
  leaving.on(SignalReceived{SIGTERM});
  CHECK(stopped(leaving.end({.code = 1})));
}

TEST_CASE("where deaths of memory are looked for that is done for every first failure, before the node has stopped") {
  for (const ExitStatus exit : {ExitStatus{.signal = SIGKILL}, ExitStatus{.code = 1}}) {
    for (const int max_restarts : {0, 3}) {
      Node node(max_restarts, false, true);
      const Effects gone = node.end(exit);
      CHECK(find<FindCrash>(gone));
      CHECK(!stopped(gone));
      const Effects found = node.on(CrashFound{0, {}});
      CHECK(stopped(found));
    }
  }
  Node told(3, true, true);
  told.from(StopWorkers{0});
  CHECK(stopped(told.end({.signal = SIGKILL})));
}

TEST_CASE("a signal to end does not wait for what is being looked for") {
  Node node;
  node.end({.code = 1});
  const Effects signalled = node.on(SignalReceived{SIGINT});
  REQUIRE(stopped(signalled));
  CHECK(!stopped(signalled)->crash);
}

TEST_CASE("a job result that comes while a crash is looked for ends the node all the same") {
  Node node;
  node.end({.code = 1});
  node.from(EndJob{{.outcome = JobResult::Outcome::kFailed, .reason = "other"}});
  node.on(CrashFound{0, kCrash});
  CHECK(find<Finish>(node.from(Dismiss{})));
}

}  // namespace
