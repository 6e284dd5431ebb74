#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "rendezvous/protocol/messages.h"

namespace elastic::election {

// Which nodes can be reached at their peer port, where they would host the coordinator after this one. Each port is
// tried once, as long as few open ones are known. A round waits for the answers, since the next leaders go with it.
// Times are milliseconds.
class PeerPorts {
 public:
  // A node with a peer port has joined. Returns whether that is to be tried: then is_open() or is_shut() is called.
  bool is_to_try(protocol::AgentId agent, std::int64_t now_ms);
  void is_open(protocol::AgentId agent);
  void is_shut(protocol::AgentId agent);
  void forget(protocol::AgentId agent);

  // Until when the next round waits for answers; empty: none is awaited. Ports that have not answered by now are shut.
  std::optional<std::int64_t> awaited_until_ms(std::int64_t now_ms);
  bool is_known_open(protocol::AgentId agent) const { return open_.contains(agent); }
  // The agent's port was not found to be shut.
  bool may_be_open(protocol::AgentId agent) const { return !shut_.contains(agent); }

 private:
  std::map<protocol::AgentId, std::int64_t> awaited_;  // the agent, and until when
  std::set<protocol::AgentId> open_;
  std::set<protocol::AgentId> shut_;
};

}  // namespace elastic::election
