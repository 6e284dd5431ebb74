#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "rendezvous/protocol/message_parts.h"

namespace elastic::coordinator {

// In which section of its script the rank is that has been silent the longest, of those that have ever shown progress.
// Each node tells of one of its ranks. Milliseconds of the coordinator's clock.
class SilentSections {
 public:
  struct Silent {
    std::int64_t since_ms = 0;
    std::optional<int> rank = {};
    std::string section = {};  // empty: none
  };

  void clear() { *this = {}; }
  // A node's rank that has been silent the longest takes the place of the one that it told of before.
  void heard(protocol::AgentId agent, Silent silent);
  // Of all nodes for which `counts(agent)` holds; null: none is known.
  const Silent* longest(const auto& counts) const {
    for (const auto& [since_ms, agent] : order_) {
      if (counts(agent)) return &silent_.at(agent);
    }
    return nullptr;
  }

 private:
  std::map<protocol::AgentId, Silent> silent_;
  std::set<std::pair<std::int64_t, protocol::AgentId>> order_;  // those that are silent the longest come first
};

}  // namespace elastic::coordinator
