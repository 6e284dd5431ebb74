#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Finds connected nodes that have sent nothing for the loss timeout, and keeps the leases of those that were lost:
// workers of such a node may run until its lease is over. Times are milliseconds of the coordinator's clock.
class LossWatch {
 public:
  explicit LossWatch(protocol::LeaseTimes lease) : lease_(lease) {}

  // A node has a session from now on.
  void watch(std::int64_t now_ms);
  // The silent nodes, if a look is due: after each look at all nodes the next one is due when the first of them could
  // have been silent for so long. The node that hosts the coordinator is never among them: the coordinator ends with
  // it. If this process has not run for a while, the look is put off until what nodes have sent meanwhile is read.
  std::vector<protocol::AgentId> silent_agents(const membership::Roster& roster, std::int64_t now_ms);

  // The node was lost, and its lease ends at this time. A node has one lease at most.
  void begin_lease(protocol::AgentId node, std::int64_t until_ms);
  // The node is back, or is forgotten. It need not have a lease.
  void forget(protocol::AgentId node);
  // The nodes whose workers must be gone by now, the earliest end first. They stay until they are forgotten. A node's
  // guardian has LeaseTimes::kKillMs to kill them, counted from the first call at which the lease had ended: if this
  // machine was suspended at the end, so were the guardians on it.
  std::vector<protocol::AgentId> leases_over(std::int64_t now_ms);
  // All nodes that have leases, the earliest end first.
  std::vector<protocol::AgentId> lost_nodes() const;
  // The latest of the times at which leases_over() is due; empty if there is no lease.
  std::optional<std::int64_t> last_lease_ms() const;

  // When silent_agents() or leases_over() is due; empty if neither is.
  std::optional<std::int64_t> next_ms() const;

  // Called after each event: a node of the job has a session, whose silence is noticed, or a lease.
  void check_invariants(const membership::Roster& roster) const;

 private:
  friend struct CoordinatorBreaker;  // for tests

  struct Lease {
    std::int64_t until_ms = 0;  // when it ends; with has_ended: when the workers must have been killed
    bool has_ended = false;
  };
  protocol::LeaseTimes lease_;
  std::optional<std::int64_t> silence_due_ms_;  // empty: no node is watched
  std::map<protocol::AgentId, Lease> leases_;
  std::set<std::pair<std::int64_t, protocol::AgentId>> by_time_;  // the same leases, by until_ms
};

}  // namespace elastic::coordinator
