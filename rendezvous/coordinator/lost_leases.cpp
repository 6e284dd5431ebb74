#include "rendezvous/coordinator/lost_leases.h"

#include "rendezvous/protocol/lease.h"
#include "src/base/check.h"

namespace elastic::coordinator {

using protocol::AgentId;

void LostLeases::begin(AgentId node, std::int64_t until_ms) {
  const bool is_new = leases_.emplace(node, Lease{until_ms}).second;
  ELASTIC_CHECK(is_new);
  by_time_.emplace(until_ms, node);
}

void LostLeases::forget(AgentId node) {
  const auto found = leases_.find(node);
  if (found == leases_.end()) return;
  by_time_.erase({found->second.until_ms, node});
  leases_.erase(found);
}

std::vector<AgentId> LostLeases::over(std::int64_t now_ms) {
  std::vector<AgentId> nodes;
  for (auto next = by_time_.begin(); next != by_time_.end() && next->first <= now_ms;) {
    const AgentId node = next->second;
    Lease& lease = leases_.at(node);
    if (lease.has_ended) {
      nodes.push_back(node);
      ++next;
      continue;
    }
    lease = {now_ms + protocol::LeaseTimes::kKillMs, true};
    next = by_time_.erase(next);
    by_time_.emplace(lease.until_ms, node);
  }
  return nodes;
}

std::vector<AgentId> LostLeases::nodes() const {
  std::vector<AgentId> nodes;
  for (const auto& [until_ms, node] : by_time_) nodes.push_back(node);
  return nodes;
}

std::optional<std::int64_t> LostLeases::next_ms() const {
  if (by_time_.empty()) return {};
  return by_time_.begin()->first;
}

std::optional<std::int64_t> LostLeases::last_ms() const {
  if (by_time_.empty()) return {};
  return by_time_.rbegin()->first;
}

void LostLeases::check_invariants() const {
  ELASTIC_CHECK(by_time_.size() == leases_.size());
  for (const auto& [node, lease] : leases_) ELASTIC_CHECK(by_time_.contains({lease.until_ms, node}));
}

}  // namespace elastic::coordinator
