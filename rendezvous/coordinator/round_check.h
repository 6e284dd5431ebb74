#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/check/check_plan.h"
#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/coordinator/round_slots.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Why a host is evicted from the job.
enum class Eviction : std::uint8_t {
  kUnhealthy,  // the check has found it unhealthy
  kHung,       // a node of it is out for a hang
};

// The check before a round's workers run: carries a health::CheckPlan out, phase by phase, and knows the hosts that are
// evicted from the job. It is told of each round that forms and of each node's answer; it says when a phase is over,
// which orders the next one has, and what the check has found. Times are milliseconds of the coordinator's clock.
class RoundCheck {
 public:
  explicit RoundCheck(std::unique_ptr<health::CheckPlan> plan) : plan_(std::move(plan)) {}

  // The orders of a phase, by node rank. Empty: no phase is left, and the check is over.
  using Orders = std::vector<std::string>;

  // A round of these nodes has formed. Answers of earlier rounds are forgotten.
  Orders begin(const std::vector<health::CheckNode>& nodes, const health::CheckRules& rules, std::int64_t now_ms);
  // The node's answer in this phase. Returns true if it was the last one that the phase awaits: next_phase() is due
  // then. An answer to another phase, and a second one, are ignored.
  bool answer(int node_rank, std::uint32_t phase, const std::string& result);
  // All nodes have answered the present phase.
  Orders next_phase(const std::vector<health::CheckNode>& nodes, const health::CheckRules& rules, std::int64_t now_ms);

  // A phase is left: workers may not run yet.
  bool is_running() const { return phase_ < phases_; }
  // The phase that runs, counted from 0.
  std::uint32_t phase() const { return phase_; }
  // How many nodes that phase checks.
  std::size_t nodes() const { return has_answered_.size(); }
  // What the check of this round has found. To be called once all phases are over.
  CheckJudged judge(protocol::RoundNumber round, const std::vector<health::CheckNode>& nodes,
                    const health::CheckRules& rules) const;

  // Nodes of this host (membership::Node::identity()) are let in no more. At most limits::kNodesPerJob hosts are
  // remembered, each with its first reason.
  void evict_host(const std::string& host, Eviction why);
  // Why nodes of the host are let in no more; empty if they are let in.
  std::optional<Eviction> eviction_of(const std::string& host) const;
  const std::map<std::string, Eviction>& evicted() const { return evicted_; }

  // Called after each event.
  void check_invariants() const;

 private:
  friend struct CoordinatorBreaker;  // for tests

  Orders begin_phase(const std::vector<health::CheckNode>& nodes, const health::CheckRules& rules, std::int64_t now_ms);

  std::unique_ptr<health::CheckPlan> plan_;
  std::uint32_t phase_ = 0;
  std::uint32_t phases_ = 0;
  std::vector<health::CheckResults> results_;  // by phase
  std::vector<std::int64_t> phase_ms_;         // how long the completed phases took
  std::int64_t phase_began_ms_ = 0;
  std::vector<bool> has_answered_;  // in the present phase, by node rank
  std::size_t answers_ = 0;         // how many nodes have answered
  std::map<std::string, Eviction> evicted_;
};

// The nodes in these slots as the check has to know them, by node rank; empty if the rules want no check.
std::vector<health::CheckNode> nodes_to_check(const Slots& slots, const membership::Roster& roster,
                                              const health::CheckRules& rules);

// What follows for a node that the check has found unhealthy.
struct UnhealthyNode {
  bool leaves = false;       // it leaves the job, so that the round has to be formed anew
  bool evicts_host = false;  // its host is evicted; not if the fault is undetermined: the node may try again
  std::string note = {};     // for the log; empty: no note
  std::string told = {};     // what the node's own user is told
  std::string because = {};  // why there is another round, as a clause
};
// `name` is membership::Node::name().
UnhealthyNode consequence_of(const health::CheckPlan::Unhealthy& found, const std::string& name,
                             const health::CheckRules& rules);

// Which nodes are checked once more before the next round, though they have passed.
struct CheckedAgain {
  bool all = false;
  std::optional<int> slot = {};  // the slot of the node on which a worker failed first
  bool contains(const std::optional<int>& of_node) const { return all || (slot && of_node == slot); }
};
// A round whose workers ran has ended with these failures, the cause first.
CheckedAgain checked_again(const std::vector<protocol::WorkerFailure>& failures, const health::CheckRules& rules);

}  // namespace elastic::coordinator
