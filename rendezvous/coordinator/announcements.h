#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Where the coordinators of jobs are, as they have announced it to this process. Times are milliseconds.
class Announcements {
 public:
  // An announcement counts for a loss timeout: coordinators repeat it several times as often.
  void hear(const std::string& job, const protocol::Announcement& what, const protocol::LeaseTimes& lease,
            std::int64_t now_ms);
  std::optional<protocol::Elsewhere> where(const std::string& job, std::int64_t now_ms) const;

 private:
  struct Heard {
    protocol::Elsewhere where;
    std::int64_t until_ms = 0;
  };
  std::map<std::string, Heard> heard_;  // at most limits::kJobsServed
};

}  // namespace elastic::coordinator
