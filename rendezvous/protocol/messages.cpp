#include "rendezvous/protocol/messages.h"

#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::protocol {

std::string WorkerFailure::text() const {
  const std::string node = node_rank == 0 ? "" : format("node {}, ", node_rank);
  return format("rank {} ({}local rank {}, pid {}) {}", rank, node, local_rank, pid, exit.text());
}

std::string why_it_left(const NodeLeaves& message) {
  if (!message.ordered) return format("stopped by {}", signal_name(message.signal));
  return format("{} has drained this node", message.by_scheduler ? "the scheduler" : "an operator");
}

std::string JobTerms::nnodes_text() const {
  return min_nodes == max_nodes ? format("--nnodes={}", max_nodes) : format("--nnodes={}:{}", min_nodes, max_nodes);
}

AgentMessage::AgentMessage(const AgentMessage& other) = default;
AgentMessage::AgentMessage(AgentMessage&& other) noexcept = default;
AgentMessage& AgentMessage::operator=(const AgentMessage& other) = default;
AgentMessage& AgentMessage::operator=(AgentMessage&& other) noexcept = default;
AgentMessage::~AgentMessage() = default;

CoordinatorMessage::CoordinatorMessage(const CoordinatorMessage& other) = default;
CoordinatorMessage::CoordinatorMessage(CoordinatorMessage&& other) noexcept = default;
CoordinatorMessage& CoordinatorMessage::operator=(const CoordinatorMessage& other) = default;
CoordinatorMessage& CoordinatorMessage::operator=(CoordinatorMessage&& other) noexcept = default;
CoordinatorMessage::~CoordinatorMessage() = default;

}  // namespace elastic::protocol
