#pragma once

#include <functional>

#include "rendezvous/protocol/messages.h"
#include "src/job/coordinator.h"

namespace elastic::runtime {

// The job's coordinator in the same process as its only agent: messages are handed over directly.
class CoordinatorHost {
 public:
  explicit CoordinatorHost(job::JobSettings settings) : coordinator_(settings) {}

  // Where the coordinator's messages go. To be set before the agent begins.
  void set_agent(std::function<void(protocol::CoordinatorMessage)> agent) {
    agent_ = std::move(agent);
  }

  void from_agent(const protocol::AgentMessage& message) {
    for (job::Send& send : coordinator_.on_message(kOnlyNode, message)) {
      agent_(std::move(send.message));
    }
  }

 private:
  static constexpr protocol::NodeId kOnlyNode = 0;
  job::Coordinator coordinator_;
  std::function<void(protocol::CoordinatorMessage)> agent_;
};

}  // namespace elastic::runtime
