#include "rendezvous/transport/leader_gossip.h"

#include "rendezvous/discovery/duplicate_job.h"
#include "rendezvous/transport/limits.h"

namespace elastic::transport {
namespace {

discovery::DuplicateJob duplicate_job(const protocol::Introduction& who) {
  return {who.incarnation, who.gossips->birth_ms, who.gossips->round};
}

}  // namespace

bool goes_before(const protocol::Introduction& one, const protocol::Introduction& other) {
  return discovery::judge_duplicate_job(duplicate_job(other), duplicate_job(one)) != discovery::Duplicate::kGoesOn;
}

std::optional<protocol::Introduction> LeaderGossip::hear(const protocol::Introduction& heard,
                                                         const protocol::LeaseTimes& lease, std::int64_t now_ms) {
  std::erase_if(heard_, [&](const auto& entry) { return entry.second.until_ms <= now_ms; });
  const auto known = heard_.find(heard.job);
  if (known != heard_.end() && goes_before(known->second.who, heard)) return known->second.who;
  if (known != heard_.end() || heard_.size() < limits::kJobsServed) {
    heard_[heard.job] = {heard, now_ms + lease.loss_timeout_ms};
  }
  return {};
}

std::optional<protocol::Redirect> LeaderGossip::where(const std::string& job, std::int64_t now_ms) const {
  const auto found = heard_.find(job);
  if (found == heard_.end() || found->second.until_ms <= now_ms) return {};
  const protocol::Gossip& what = *found->second.who.gossips;
  return protocol::Redirect{what.addresses, what.port, {}};
}

}  // namespace elastic::transport
