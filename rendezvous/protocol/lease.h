#pragma once

#include <algorithm>
#include <cstdint>

namespace elastic::protocol {

// The times that follow from the loss timeout, in milliseconds: how long a node may be without word, in
// both directions. Agents enforce the lease by their clocks, the coordinator waits by its own; so that no
// two rounds' workers live at once, it waits a little longer than the lease.
struct LeaseTimes {
  std::int64_t loss_timeout_ms = 5000;

  // How often an agent asks for its lease to be renewed.
  std::int64_t renewal_ms() const { return loss_timeout_ms / 5; }
  // How long an agent lets its workers run, counted from when it sent the last renewal that was answered.
  std::int64_t lease_ms() const { return loss_timeout_ms * 3 / 5; }
  // When no lease runs any more, counted from the last word that came from the node: clocks may run apart by 1 %.
  std::int64_t ends_ms() const { return lease_ms() + lease_ms() / 100; }
  // When the workers of a node that is lost are gone: the agent needs a moment to kill. A machine that was asleep at
  // the lease's end wakes its guardians no sooner than the coordinator on it; so the moment counts from where that has
  // seen the end.
  std::int64_t over_ms() const { return ends_ms() + kKillMs; }
  // When all have found a coordinator that came into a running job, counted from its coming: no lease that another
  // gave runs any more, and who is between two tries has made the next.
  std::int64_t all_back_ms() const { return std::max(over_ms(), kLongestPauseMs + kLongestPauseMs / 100 + kConnectMs); }

  static constexpr std::int64_t kKillMs = 100;
  // Between two tries of an agent to reach a coordinator, at most; and for the try itself.
  static constexpr std::int64_t kLongestPauseMs = 2000;
  static constexpr std::int64_t kConnectMs = 250;
};

}  // namespace elastic::protocol
