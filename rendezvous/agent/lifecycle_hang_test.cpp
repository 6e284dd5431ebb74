// A node whose round hangs, and ends for that.
#include <doctest/doctest.h>

#include <csignal>
#include <optional>
#include <vector>

#include "rendezvous/agent/lifecycle.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

template <class Kind>
std::vector<Kind> all(const Effects& effects) {
  std::vector<Kind> found;
  for (const Effect& effect : effects) {
    if (const auto* match = std::get_if<Kind>(&effect)) found.push_back(*match);
  }
  return found;
}
template <class Kind>
Kind the(const Effects& effects) {
  const std::vector<Kind> found = all<Kind>(effects);
  REQUIRE(found.size() == 1);
  return found[0];
}

// Node 1 of two, whose two workers run in round 4.
struct Node {
  explicit Node(bool ignores_stuck_workers = false, const NodePlace& place = {1, 2, 2, 4, 2, 4})
      : life({.local_world_size = 2, .ignore_stuck_workers = ignores_stuck_workers}) {
    from(PrepareRound{.round = 4, .place = place, .membership = 99});
    if (place.node_rank == 0) on(StoreOpened{{"10.0.0.1", 4000}});
    the<StartWorkers>(from(RunWorkers{4, {"10.0.0.1", 4000}}));
  }
  Effects on(const Event& event) { return life.on_event(event, now_ms); }
  Effects from(const CoordinatorMessage& message) { return on(FromCoordinator{message}); }
  // A worker is stopped, and survives SIGKILL. Returns what the coordinator is told of that; empty: nothing.
  std::optional<NodeCannotRun> given_up() {
    on(TimerFired{});
    on(TimerFired{});
    on(SurvivorsNamed{"process 7 (python, state D)"});
    const Effects effects = on(TimerFired{});
    the<AbandonWorkers>(effects);
    for (const ToCoordinator& sent : all<ToCoordinator>(effects)) {
      if (const auto* told = std::get_if<NodeCannotRun>(&sent.message)) return *told;
    }
    return {};
  }

  Lifecycle life;
  std::int64_t now_ms = 0;
};

}  // namespace

TEST_CASE("a verdict that ends the round is told though a worker has failed before it came") {
  for (const bool all_are_gone : {false, true}) {
    CAPTURE(all_are_gone);
    Node node;
    node.on(WorkerExited{0, {.code = 1}, 5});  // its peers on the other node were told to stop before this node was
    if (all_are_gone) node.on(AllGone{});
    CHECK(the<TellHang>(node.from(HangTold{.round = 4, .text = "no progress"})).told.text == "no progress");
    CHECK(all<Warn>(node.from(StopWorkers{.round = 4, .hangs = true})).empty());
  }
}

TEST_CASE("workers that are stopped are continued when the coordinator says so, unless they are being stopped") {
  const auto told = [](bool is_stopped) {
    return HangTold{.round = 4, .what = HangTold::What::kContinues, .is_stopped = is_stopped};
  };
  Node node;
  CHECK(all<SignalWorkers>(node.from(told(false))).empty());
  const Effects continued = node.from(told(true));
  CHECK(the<SignalWorkers>(continued).signal == SIGCONT);
  the<TellHang>(continued);
  // That was no verdict.
  CHECK(all<Warn>(node.from(StopWorkers{.round = 4, .hangs = true})).size() == 1);
  const Effects stopping = node.from(told(true));
  CHECK(all<SignalWorkers>(stopping).empty());
  the<TellHang>(stopping);
}

TEST_CASE("who hangs beside a worker that has failed before the order came is continued, and waited for no longer") {
  Node node;
  CHECK(the<StartTimer>(node.on(WorkerExited{0, {.code = 1}, 5})).delay_ms == 30'000);
  node.now_ms = 1'000;
  node.from(HangTold{.round = 4});
  const Effects stopped = node.from(StopWorkers{.round = 4, .hangs = true});
  CHECK(the<SignalWorkers>(stopped).signal == SIGCONT);
  CHECK(the<StartTimer>(stopped).delay_ms == 5'000);
  CHECK(the<SignalWorkers>(node.on(TimerFired{})).signal == SIGKILL);
  CHECK(node.from(StopWorkers{.round = 4, .hangs = true}).empty());
}

TEST_CASE("a round that hangs is stopped as such, and evidence is read no more") {
  Node node;
  node.from(CollectEvidence{.round = 4, .collection = 1});
  node.from(HangTold{.round = 4});
  const Effects stopped = node.from(StopWorkers{.round = 4, .hangs = true, .aborts = true});
  CHECK(std::holds_alternative<StopEvidence>(stopped.front()));
  CHECK(all<SignalWorkers>(stopped).at(0).signal == SIGABRT);
  CHECK(the<StartTimer>(stopped).delay_ms == 3'000);
  // A coordinator that takes over gives the order again.
  node.now_ms = 1'000;
  CHECK(the<StartTimer>(node.from(StopWorkers{.round = 4, .hangs = true})).delay_ms == 2'000);
}

TEST_CASE("workers that are to dump get their first signal when they have, and the store stays until then") {
  Node node;
  node.from(HangTold{.round = 4});
  const Effects stopped = node.from(StopWorkers{.round = 4, .hangs = true, .dumps = true});
  CHECK(the<AwaitDumps>(stopped).round == 4);
  CHECK(all<SignalWorkers>(stopped).empty());
  // A worker that dies of its dump is no failure that begins another stop.
  CHECK(all<SignalWorkers>(node.on(WorkerExited{0, {.signal = SIGABRT}, 5})).empty());
  CHECK(node.on(DumpsAwaited{3}).empty());  // of an earlier round
  const Effects dumped = node.on(DumpsAwaited{4});
  CHECK(all<SignalWorkers>(dumped).at(0).signal == SIGTERM);
  the<AwaitAllGone>(dumped);
  CHECK(node.on(DumpsAwaited{4}).empty());
}

TEST_CASE("a node whose workers have succeeded keeps its store until those of others have seen the key") {
  Node node(false, {0, 2, 0, 4, 0, 4});
  for (const int local_rank : {0, 1}) node.on(WorkerExited{local_rank, {}, 5});
  const Effects stopped = node.from(StopWorkers{.round = 4, .hangs = true, .dumps = true});
  the<AwaitDumps>(stopped);
  CHECK(all<AwaitAllGone>(stopped).empty());
  the<AwaitAllGone>(node.on(DumpsAwaited{4}));
  the<CloseStore>(node.on(AllGone{}));
  CHECK(node.life.is_idle());
}

TEST_CASE("a worker that survives SIGKILL when a hang ends the round costs the node, also where it would be ignored") {
  for (const bool fails_first : {false, true}) {
    CAPTURE(fails_first);
    for (const bool ignores : {false, true}) {
      CAPTURE(ignores);
      Node node(ignores);
      if (fails_first) node.on(WorkerExited{0, {.code = 1}, 5});
      node.from(HangTold{.round = 4});
      node.from(StopWorkers{.round = 4, .hangs = true});
      CHECK(node.given_up() == NodeCannotRun{4, "process 7 (python, state D) survived SIGKILL", ignores});
    }
  }
  Node not_hung(true);
  not_hung.from(StopWorkers{4});
  CHECK(!not_hung.given_up());
}

TEST_CASE("a node that is the only one goes on where a worker that survives SIGKILL is ignored, and says how else") {
  for (const bool ignores : {false, true}) {
    CAPTURE(ignores);
    Node node(ignores, {0, 1, 0, 2, 0, 2});
    node.from(HangTold{.round = 4});
    node.from(StopWorkers{.round = 4, .hangs = true});
    const auto told = node.given_up();
    CHECK(told.has_value() != ignores);
    if (!told) continue;
    CHECK(told->reason ==
          "process 7 (python, state D) survived SIGKILL; --stuck-worker=ignore lets the job go on without it");
  }
}

TEST_CASE("that one round was ended for a hang says nothing about the next one") {
  Node node(true);
  node.from(HangTold{.round = 4});
  node.from(StopWorkers{.round = 4, .hangs = true});
  node.on(AllGone{});
  node.from(PrepareRound{.round = 5, .place = {1, 2, 2, 4, 2, 4}, .membership = 99});
  node.from(RunWorkers{5, {"10.0.0.1", 4000}});
  node.from(StopWorkers{5});
  CHECK(!node.given_up());
}
