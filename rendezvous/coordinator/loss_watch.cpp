#include "rendezvous/coordinator/loss_watch.h"

#include <algorithm>

#include "src/base/check.h"

namespace elastic::coordinator {

using membership::MemberState;
using protocol::AgentId;
using protocol::LeaseTimes;

void LossWatch::watch(std::int64_t now_ms) {
  const std::int64_t at_ms = now_ms + lease_.loss_timeout_ms;
  silence_due_ms_ = std::min(silence_due_ms_.value_or(at_ms), at_ms);
}

std::vector<AgentId> LossWatch::silent_agents(const membership::Roster& roster, std::int64_t now_ms) {
  if (!silence_due_ms_ || now_ms < *silence_due_ms_) return {};
  if (now_ms - *silence_due_ms_ > lease_.renewal_ms()) {
    silence_due_ms_ = now_ms + lease_.renewal_ms();
    return {};
  }
  silence_due_ms_.reset();
  std::vector<AgentId> silent;
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

void LossWatch::begin_lease(AgentId node, std::int64_t until_ms) {
  const bool is_new = leases_.emplace(node, Lease{until_ms}).second;
  ELASTIC_CHECK(is_new);
  by_time_.emplace(until_ms, node);
}

void LossWatch::forget(AgentId node) {
  const auto found = leases_.find(node);
  if (found == leases_.end()) return;
  by_time_.erase({found->second.until_ms, node});
  leases_.erase(found);
}

std::vector<AgentId> LossWatch::leases_over(std::int64_t now_ms) {
  std::vector<AgentId> nodes;
  for (auto next = by_time_.begin(); next != by_time_.end() && next->first <= now_ms;) {
    const AgentId node = next->second;
    Lease& lease = leases_.at(node);
    if (lease.has_ended) {
      nodes.push_back(node);
      ++next;
      continue;
    }
    lease = {now_ms + LeaseTimes::kKillMs, true};
    next = by_time_.erase(next);
    by_time_.emplace(lease.until_ms, node);
  }
  return nodes;
}

std::vector<AgentId> LossWatch::lost_nodes() const {
  std::vector<AgentId> nodes;
  for (const auto& [until_ms, node] : by_time_) nodes.push_back(node);
  return nodes;
}

std::optional<std::int64_t> LossWatch::last_lease_ms() const {
  if (by_time_.empty()) return {};
  return by_time_.rbegin()->first;
}

std::optional<std::int64_t> LossWatch::next_ms() const {
  if (by_time_.empty()) return silence_due_ms_;
  const std::int64_t lease_ms = by_time_.begin()->first;
  return std::min(silence_due_ms_.value_or(lease_ms), lease_ms);
}

void LossWatch::check_invariants(const membership::Roster& roster) const {
  ELASTIC_CHECK(by_time_.size() == leases_.size());
  for (const auto& [node, lease] : leases_) ELASTIC_CHECK(by_time_.contains({lease.until_ms, node}));
  ELASTIC_CHECK(leases_.size() == roster.count(MemberState::kLost));
  for (const auto& [agent, node] : roster.nodes()) {
    const bool is_lost = node.member_state() == MemberState::kLost;
    ELASTIC_CHECK(node.session.has_value() == !is_lost);
    ELASTIC_CHECK(leases_.contains(agent) == is_lost);
    ELASTIC_CHECK(is_lost || node.hosts_coordinator || silence_due_ms_);
  }
}

}  // namespace elastic::coordinator
