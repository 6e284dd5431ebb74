#include <doctest/doctest.h>

#include "rendezvous/agent/lifecycle.h"

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

Lifecycle begun() {
  Lifecycle life({.local_world_size = 2, .agent = 7, .address = "node1"});
  life.on_event(Begin{}, 0);
  return life;
}

Effects tell(Lifecycle& life, CoordinatorMessage message) {
  return life.on_event(FromCoordinator{std::move(message)}, 0);
}

const PrepareRound kRound{.round = 3,
                          .restart_count = 1,
                          .max_restarts = 2,
                          .place = {.node_rank = 1, .node_count = 2, .base_rank = 2, .world_size = 4},
                          .membership = 99};

}  // namespace

TEST_CASE("a node tells what it does, from its first wait to the end of a round") {
  Lifecycle life = begun();
  CHECK(life.status().activity == NodeActivity::kWaiting);
  CHECK(!life.status().round);
  CHECK(life.status().name == "node1");
  tell(life, Awaiting{.what = "standing by: the job runs with 2 nodes"});
  CHECK(life.status().activity == NodeActivity::kStandby);
  tell(life, kRound);
  CHECK(life.status().activity == NodeActivity::kPreparing);
  tell(life, RunCheck{3, 0, "look"});
  CHECK(life.status().activity == NodeActivity::kChecking);
  tell(life, RunWorkers{3, {"10.0.0.1", 4000}});
  CHECK(life.status().activity == NodeActivity::kRunning);
  CHECK(life.status().ready());
  tell(life, StopWorkers{3});
  CHECK(life.status().activity == NodeActivity::kStopping);
  life.on_event(AllGone{}, 0);
  CHECK(life.status().activity == NodeActivity::kWaiting);
}

TEST_CASE("a node tells its place in the round and which of its workers run") {
  Lifecycle life = begun();
  tell(life, kRound);
  tell(life, RunWorkers{3, {"10.0.0.1", 4000}});
  life.on_event(WorkerStarted{0, 4711}, 0);
  life.on_event(WorkerStarted{1, 4712}, 0);
  life.on_event(WorkerExited{0, {}, 5}, 0);
  const status::Node node = life.status();
  CHECK(node.round == 3);
  CHECK(node.node_rank == 1);
  CHECK(node.world_size == 4);
  CHECK(node.restart_count == 1);
  REQUIRE(node.workers.size() == 2);
  CHECK(!node.workers[0].running);
  CHECK(node.workers[1].running);
  CHECK(node.workers[1].rank == 3);
  CHECK(node.workers[1].pid == 4712);
  life.on_event(WorkerExited{1, {}, 5}, 0);
  CHECK(life.status().activity == NodeActivity::kSucceeded);
  CHECK(!life.status().ready());
}

TEST_CASE("the coordinator is told of progress while the workers of that round run, and not of another's") {
  Lifecycle life = begun();
  const ProgressMade made{NodeProgress{.round = 3, .newest = {.rank = 2, .step = 5}, .speakers = 1}};
  CHECK(life.on_event(made, 0).empty());
  tell(life, kRound);
  CHECK(life.on_event(made, 0).empty());
  tell(life, RunWorkers{3, {"10.0.0.1", 4000}});
  const Effects told = life.on_event(made, 0);
  REQUIRE(told.size() == 1);
  CHECK(std::get<NodeProgress>(std::get<ToCoordinator>(told.front()).message) == made.progress);
  CHECK(life.on_event(ProgressMade{NodeProgress{.round = 2}}, 0).empty());
  tell(life, StopWorkers{3});
  CHECK(life.on_event(made, 0).empty());
}

TEST_CASE(
    "of the loaders other nodes are told from the preparation of their round on until it has ended, and hear more") {
  Lifecycle life = begun();
  const LoaderSaid said{LoaderSays{.round = 3, .word = {.node = tuning::NodeState{.version = 2}}}};
  const auto is_told = [&] {
    const Effects told = life.on_event(said, 0);
    if (told.empty()) return false;
    CHECK(std::get<LoaderSays>(std::get<ToCoordinator>(told.front()).message) == said.says);
    return true;
  };
  const auto is_heard = [&](RoundNumber round) {
    const Effects heard = tell(life, LoaderTold{.round = round, .node_rank = 0});
    return heard.size() == 1 && std::holds_alternative<HearLoader>(heard.front());
  };
  CHECK(!is_told());
  tell(life, kRound);
  CHECK(is_told());
  CHECK(is_heard(3));
  CHECK(!is_heard(2));
  tell(life, RunWorkers{3, {"10.0.0.1", 4000}});
  CHECK(is_told());
  CHECK(is_heard(3));
  CHECK(life.on_event(LoaderSaid{LoaderSays{.round = 2}}, 0).empty());
  tell(life, StopWorkers{3});
  CHECK(is_told());
  life.on_event(AllGone{}, 0);
  CHECK(!is_told());
  CHECK(is_heard(3));  // how the round has ended for another node
}

TEST_CASE("a node whose workers run is to see what they are doing, and tells that; without workers it says so") {
  Lifecycle life = begun();
  const auto said = [&](const Effects& effects) -> NodeStacks {
    REQUIRE(effects.size() == 1);
    return std::get<NodeStacks>(std::get<ToCoordinator>(effects.front()).message);
  };
  const NodeStacks none{.collection = 4, .groups = "", .problem = "it has no workers now"};
  CHECK(said(tell(life, StacksWanted{4})) == none);
  tell(life, kRound);
  CHECK(said(tell(life, StacksWanted{4})) == none);
  tell(life, RunWorkers{3, {"10.0.0.1", 4000}});
  life.on_event(WorkerStarted{0, 4711}, 0);
  life.on_event(WorkerStarted{1, 4712}, 0);
  life.on_event(WorkerExited{0, {}, 5}, 0);
  const Effects wanted = tell(life, StacksWanted{5});
  REQUIRE(wanted.size() == 1);
  CHECK(std::get<CollectStacks>(wanted.front()).collection == 5);
  const NodeStacks told{.collection = 5, .groups = "{}"};
  CHECK(said(life.on_event(StacksCollected{told}, 0)) == told);
}
