#include "rendezvous/transport/announcements.h"

#include "rendezvous/discovery/rival.h"
#include "rendezvous/transport/limits.h"

namespace elastic::transport {
namespace {

discovery::Rival rival(const protocol::Introduction& who) {
  return {who.incarnation, who.announces->birth_ms, who.announces->round};
}

}  // namespace

bool goes_before(const protocol::Introduction& one, const protocol::Introduction& other) {
  return discovery::judge_rival(rival(other), rival(one)) != discovery::Rivalry::kGoesOn;
}

std::optional<protocol::Introduction> Announcements::hear(const protocol::Introduction& heard,
                                                          const protocol::LeaseTimes& lease, std::int64_t now_ms) {
  std::erase_if(heard_, [&](const auto& entry) { return entry.second.until_ms <= now_ms; });
  const auto known = heard_.find(heard.job);
  if (known != heard_.end() && goes_before(known->second.who, heard)) return known->second.who;
  if (known != heard_.end() || heard_.size() < limits::kJobsServed) {
    heard_[heard.job] = {heard, now_ms + lease.loss_timeout_ms};
  }
  return {};
}

std::optional<protocol::Elsewhere> Announcements::where(const std::string& job, std::int64_t now_ms) const {
  const auto found = heard_.find(job);
  if (found == heard_.end() || found->second.until_ms <= now_ms) return {};
  const protocol::Announcement& what = *found->second.who.announces;
  return protocol::Elsewhere{what.addresses, what.port, {}};
}

}  // namespace elastic::transport
