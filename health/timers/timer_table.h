#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "health/timers/timer_request.h"

namespace elastic::timers {

// A process that has not released a timer in time.
struct Expired {
  std::int64_t pid = 0;
  std::string scope = {};   // of the timer that expired first, of those that want a signal if there are any
  std::int64_t due_ms = 0;  // when it expired, in the caller's clock
  int signal = 0;           // that it wants; 0: none of the expired timers wants one
  bool operator==(const Expired&) const = default;
};

// The timers of a node's processes, by the rules of torchelastic's FileTimerServer. A timer is a process and a scope;
// who sets it again replaces it.
//
// Clients name a time of the host's clock. It is turned into a time of the caller's clock as soon as the request is
// there, so that a host's clock that is set neither ends a process that is well nor spares another one.
class TimerTable {
 public:
  // What somebody has said, at the Unix time `wall_ms`; `now_ms` is the same moment by the caller's monotonic clock.
  // False if there is no room for a further timer (limits::kFileTimers), and it is passed over.
  bool note_request(const TimerRequest& request, std::int64_t wall_ms, std::int64_t now_ms);

  // The processes of which a timer has expired, by pid. All timers of such a process are gone then.
  std::vector<Expired> take_expired(std::int64_t now_ms);

  // When the next timer expires; nothing: there is none.
  std::optional<std::int64_t> next_ms() const;
  bool has(std::int64_t pid) const;
  void clear() { timers_.clear(); }
  std::size_t size() const { return timers_.size(); }

 private:
  struct Timer {
    std::int64_t due_ms = 0;
    int signal = 0;
  };
  std::map<std::pair<std::int64_t, std::string>, Timer> timers_;  // by pid and scope
};

}  // namespace elastic::timers
