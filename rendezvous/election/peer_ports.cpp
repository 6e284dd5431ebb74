#include "rendezvous/election/peer_ports.h"

#include <algorithm>

#include "rendezvous/election/limits.h"
#include "rendezvous/protocol/lease.h"

namespace elastic::election {

using protocol::AgentId;

bool PeerPorts::is_to_try(AgentId agent, std::int64_t now_ms) {
  if (awaited_.contains(agent) || open_.contains(agent) || shut_.contains(agent)) return false;
  const std::size_t hopeful = open_.size() + awaited_.size();
  if (hopeful >= limits::kPeerPortsWanted || hopeful + shut_.size() >= limits::kPeerPortsTried) return false;
  awaited_.emplace(agent, now_ms + protocol::LeaseTimes::kPeerPortMs);
  return true;
}

void PeerPorts::is_open(AgentId agent) {
  // A port that was taken for shut may have answered late.
  if (awaited_.erase(agent) + shut_.erase(agent) > 0) open_.insert(agent);
}

void PeerPorts::is_shut(AgentId agent) {
  if (awaited_.erase(agent) > 0) shut_.insert(agent);
}

void PeerPorts::forget(AgentId agent) {
  awaited_.erase(agent);
  open_.erase(agent);
  shut_.erase(agent);
}

std::optional<std::int64_t> PeerPorts::awaited_until_ms(std::int64_t now_ms) {
  std::optional<std::int64_t> until;
  for (auto entry = awaited_.begin(); entry != awaited_.end();) {
    if (entry->second <= now_ms) {
      shut_.insert(entry->first);
      entry = awaited_.erase(entry);
    } else {
      until = std::max(until.value_or(entry->second), entry->second);
      ++entry;
    }
  }
  return until;
}

}  // namespace elastic::election
