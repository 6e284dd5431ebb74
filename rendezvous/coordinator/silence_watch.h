#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Finds connected nodes that have sent nothing for the loss timeout. After each look at all of them the next one is due
// when the first of them could have been silent for so long. Times are milliseconds of the coordinator's clock.
class SilenceWatch {
 public:
  explicit SilenceWatch(protocol::LeaseTimes lease) : lease_(lease) {}

  // A node has a session from now on.
  void watch(std::int64_t now_ms);
  // When silent_agents() is due; empty if no node is watched.
  std::optional<std::int64_t> due_ms() const { return due_ms_; }
  // The silent nodes, if a look is due. The node that hosts the coordinator is never among them: the coordinator ends
  // with it. If this process has not run for a while, the look is put off until what nodes have sent meanwhile is read.
  std::vector<protocol::AgentId> silent_agents(const membership::Roster& roster, std::int64_t now_ms);

 private:
  friend struct CoordinatorBreaker;  // for tests

  protocol::LeaseTimes lease_;
  std::optional<std::int64_t> due_ms_;
};

}  // namespace elastic::coordinator
