#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Finds connected nodes from which nothing has come for the loss timeout. One look at all of them serves until the
// first of them could be silent for so long. Times are milliseconds of the coordinator's clock.
class SilenceWatch {
 public:
  explicit SilenceWatch(protocol::LeaseTimes lease) : lease_(lease) {}

  // A node has a session from now on.
  void watch(std::int64_t now_ms);
  // When look() is due; nothing if no node is watched.
  std::optional<std::int64_t> due_ms() const { return due_ms_; }
  // If it is due, the nodes that are silent. The node that hosts the coordinator is never among them: the coordinator
  // ends with it. If this process has not run for a while, what nodes have sent meanwhile is to be read first, and the
  // look is put off.
  std::vector<protocol::AgentId> look(const membership::Roster& roster, std::int64_t now_ms);

 private:
  friend struct CoordinatorBreaker;  // a test's

  protocol::LeaseTimes lease_;
  std::optional<std::int64_t> due_ms_;
};

}  // namespace elastic::coordinator
