#include "rendezvous/coordinator/silent_sections.h"

namespace elastic::coordinator {

void SilentSections::heard(protocol::AgentId agent, Silent silent) {
  const auto [known, is_new] = silent_.try_emplace(agent);
  if (!is_new) order_.erase({known->second.since_ms, agent});
  known->second = std::move(silent);
  order_.emplace(known->second.since_ms, agent);
}

}  // namespace elastic::coordinator
