#include "rendezvous/coordinator/silence_watch.h"

#include <algorithm>

namespace elastic::coordinator {

void SilenceWatch::watch(std::int64_t now_ms) {
  const std::int64_t at_ms = now_ms + lease_.loss_timeout_ms;
  due_ms_ = std::min(due_ms_.value_or(at_ms), at_ms);
}

std::vector<protocol::AgentId> SilenceWatch::silent_agents(const membership::Roster& roster, std::int64_t now_ms) {
  if (!due_ms_ || now_ms < *due_ms_) return {};
  if (now_ms - *due_ms_ > lease_.renewal_ms()) {
    due_ms_ = now_ms + lease_.renewal_ms();
    return {};
  }
  due_ms_.reset();
  std::vector<protocol::AgentId> silent;
  for (const auto& [agent, node] : roster.nodes()) {
    if (!node.session || node.hosts_coordinator) continue;
    if (node.last_heard_ms + lease_.loss_timeout_ms <= now_ms) {
      silent.push_back(agent);
    } else {
      watch(node.last_heard_ms);
    }
  }
  return silent;
}

}  // namespace elastic::coordinator
