#pragma once

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
  // When the workers of a node that is lost are gone, counted from the last word that came from it: clocks
  // may run apart by 1 %, and the agent needs a moment to kill.
  std::int64_t over_ms() const { return lease_ms() + lease_ms() / 100 + kKillMs; }

  static constexpr std::int64_t kKillMs = 100;
};

}  // namespace elastic::protocol
