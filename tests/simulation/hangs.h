#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/protocol/messages.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/hang_evidence.h"
#include "tests/simulation/hang_invariants.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/workers.h"

namespace elastic::simulation {

class Node;
class Simulation;

// Rounds that train, and rounds that hang: what their workers show of that by themselves, and what their nodes read
// when they are asked. It does nothing in a simulation whose setup has no hangs.
class Hangs {
 public:
  Hangs(Simulation& simulation, Random random);
  bool are_on() const;
  HangInvariants& invariants() { return invariants_; }
  const HangInvariants& invariants() const { return invariants_; }

  void worker_started(WorkerId id);
  // All workers of this world have been started.
  void world_is_there(std::size_t index);
  // Its workers train on, though their time is over: they hang, or did until just now.
  bool goes_on(std::size_t index) const;
  // All its workers live, and none was told to end.
  bool is_whole(std::size_t index) const;
  void agent_acts(Node& node, const agent::Effect& effect);
  // No fault comes any more, and no further hang: those that are there must be told.
  void calm();

  // When a node reads its evidence, and when it sends it, from now; not set: never.
  struct Reading {
    Ms reads_ms = 0;
    std::optional<Ms> sends_ms = {};
  };
  Reading plan_reading();
  hang::NodeFacts read(const Node& node, const protocol::CollectEvidence& order);

  // The last hang of a world; null: it had none.
  const Hang* hang_of(std::size_t index) const;
  // The nodes of a world, by their ranks.
  const std::vector<int>& nodes_of(std::size_t index) const { return states_[index].nodes; }
  // The world whose workers this node has started last; not set: none.
  std::optional<std::size_t> world_of(const Node& node) const;
  // When a world was last seen to make no progress; before 0: never.
  Ms stood_ms(std::size_t index) const { return states_[index].stood_ms; }
  // A hang of this world has been told on that node, and is not over.
  bool is_told(const Node& node, std::size_t index) const;
  // A coordinator has withdrawn the alarm of this hang, and was right to by what it knew.
  void was_taken_for_a_step(std::size_t index);
  HangCounts& counts() { return counts_; }

 private:
  struct State {
    std::vector<int> nodes = {};
    std::optional<Hang> hang = {};
    Ms stood_ms = -1;
    Ms trains_until_ms = 0;
    std::int64_t step = 0;
    bool was_told = false;                     // this hang, on any node
    std::optional<Ms> taken_for_step_ms = {};  // when it was last
  };
  const World& world(std::size_t index) const;
  bool is_hanging(std::size_t index) const;
  bool moves(std::size_t index) const;
  void beat(std::size_t index);
  void plan_hang(std::size_t index);
  void begin(std::size_t index, Hang hang, std::optional<Ms> lasts_ms);
  void show_signs(std::size_t index);
  void was_told(std::size_t index);
  void end(std::size_t index);
  void look_when_settled(std::size_t index);
  void must_be_told(std::size_t index, Ms limit_ms, Ms since_ms);

  Simulation& simulation_;
  Random random_;
  HangInvariants invariants_;
  std::vector<State> states_;                       // by world
  std::map<int, std::size_t> worlds_;               // by node
  std::map<int, std::optional<std::size_t>> told_;  // by node: the world of which a hang is told
  std::optional<Ms> settled_ms_;                    // from then on all faults are over with all that follows
  HangCounts counts_;
};

}  // namespace elastic::simulation
