#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "rendezvous/protocol/message_parts.h"

namespace elastic::coordinator {

// The script section of the rank that has been silent the longest, of those that have ever shown progress. Each node
// tells of one of its ranks. Times are milliseconds of the coordinator's clock.
class SilentSections {
 public:
  struct Silent {
    std::int64_t since_ms = 0;
    std::optional<int> rank = {};
    std::string section = {};  // empty: none
  };

  void clear() { *this = {}; }
  // The rank that a node reports as silent the longest replaces the one that it reported before.
  void heard(protocol::AgentId agent, Silent silent);
  // The longest silent of all nodes for which `counts(agent)` holds; null: none is known.
  const Silent* longest(const auto& counts) const {
    for (const auto& [since_ms, agent] : order_) {
      if (counts(agent)) return &silent_.at(agent);
    }
    return nullptr;
  }

 private:
  std::map<protocol::AgentId, Silent> silent_;
  std::set<std::pair<std::int64_t, protocol::AgentId>> order_;  // the longest silent first
};

}  // namespace elastic::coordinator
