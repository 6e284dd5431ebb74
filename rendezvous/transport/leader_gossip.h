#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/session.h"

namespace elastic::transport {

// Where the coordinators of jobs are, as they have gossiped to this process. Times are milliseconds.
class LeaderGossip {
 public:
  // Gossip counts for a loss timeout: coordinators repeat it several times as often. If some of another start of the
  // job counts that goes before this one (judge_duplicate_job), it goes on counting and is returned: the coordinator
  // that gossips here is to hear it. `heard.gossips` must be set.
  std::optional<protocol::Introduction> hear(const protocol::Introduction& heard, const protocol::LeaseTimes& lease,
                                             std::int64_t now_ms);
  std::optional<protocol::Redirect> where(const std::string& job, std::int64_t now_ms) const;

 private:
  struct Heard {
    protocol::Introduction who;
    std::int64_t until_ms = 0;
  };
  std::map<std::string, Heard> heard_;  // by job, at most limits::kJobsServed
};

// Both gossip about coordinators of one job: the first one is of another start, which goes before that of the second.
bool goes_before(const protocol::Introduction& one, const protocol::Introduction& other);

}  // namespace elastic::transport
