#include "rendezvous/coordinator/announcements.h"

#include "src/base/limits.h"

namespace elastic::coordinator {

void Announcements::hear(const std::string& job, const protocol::Announcement& what, const protocol::LeaseTimes& lease,
                         std::int64_t now_ms) {
  std::erase_if(heard_, [&](const auto& entry) { return entry.second.until_ms <= now_ms; });
  if (heard_.size() >= limits::kJobsServed && !heard_.contains(job)) return;
  heard_[job] = {{what.addresses, what.port, {}}, now_ms + lease.loss_timeout_ms};
}

std::optional<protocol::Elsewhere> Announcements::where(const std::string& job, std::int64_t now_ms) const {
  const auto found = heard_.find(job);
  if (found == heard_.end() || found->second.until_ms <= now_ms) return {};
  return found->second.where;
}

}  // namespace elastic::coordinator
