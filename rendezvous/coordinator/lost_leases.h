#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// The leases of nodes that were lost. Workers of such a node may run until its lease is over. Times are milliseconds of
// the coordinator's clock.
class LostLeases {
 public:
  // The node was lost, and its lease ends at this time. A node has one lease at most.
  void begin(protocol::AgentId node, std::int64_t until_ms);
  // The node is back, or is forgotten. It need not have a lease.
  void forget(protocol::AgentId node);

  // The nodes whose workers must be gone by now, the earliest end first. They stay until they are forgotten. A node's
  // guardian has LeaseTimes::kKillMs to kill them, counted from the first call at which the lease had ended: if this
  // machine was suspended at the end, so were the guardians on it.
  std::vector<protocol::AgentId> over(std::int64_t now_ms);

  // All nodes that have leases, the earliest end first.
  std::vector<protocol::AgentId> nodes() const;
  // When over() is due; empty if there is no lease.
  std::optional<std::int64_t> next_ms() const;
  // The latest of the times at which over() is due; empty if there is no lease.
  std::optional<std::int64_t> last_ms() const;

  bool has(protocol::AgentId node) const { return leases_.contains(node); }
  std::size_t size() const { return leases_.size(); }

  // Called after each event.
  void check_invariants() const;

 private:
  friend struct CoordinatorBreaker;  // for tests

  struct Lease {
    std::int64_t until_ms = 0;  // when it ends; with has_ended: when the workers must have been killed
    bool has_ended = false;
  };
  std::map<protocol::AgentId, Lease> leases_;
  std::set<std::pair<std::int64_t, protocol::AgentId>> by_time_;  // the same leases, by until_ms
};

}  // namespace elastic::coordinator
