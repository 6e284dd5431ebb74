#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/timers/limits.h"

namespace elastic::timers {

// What a client of torchelastic's file timers says in a line of JSON (torch/distributed/elastic/timer/
// file_based_local_timer.py): a timer is set, or set anew, or released.
//
//   {"version": 1, "pid": 4711, "scope_id": "train.py#12", "expiration_time": 1764269873.25, "signal": 9}
struct TimerRequest {
  std::int64_t pid = 0;  // of the process that the timer guards; with the scope it is the timer's name
  std::string scope = {};
  std::optional<std::int64_t> expires_ms = {};  // Unix time by the host's clock; nothing: the timer is released
  int signal = 0;                               // that ends the process; 0: none is wanted
  bool operator==(const TimerRequest&) const = default;
};

// Reads a line, without its end. Nothing where it is no request. A request that stands behind something that somebody
// has written without a line end is read, too: a release that is lost would end a process that is well.
std::optional<TimerRequest> read_timer_request(std::string_view line);

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

// Cuts what comes out of the FIFO of file timers into lines. A line that is longer than any client writes is passed
// over, up to its end.
class TimerLines {
 public:
  // Calls each(std::string_view line) for the lines that the bytes complete.
  template <class Each>
  void push(std::string_view bytes, const Each& each) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      keep(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      if (!is_skipping_) each(std::string_view(line_));
      clear();
    }
  }

  // Forgets a line that has no end yet.
  void clear() {
    line_.clear();
    is_skipping_ = false;
  }

 private:
  void keep(std::string_view text) {
    is_skipping_ = is_skipping_ || line_.size() + text.size() > limits::kFileTimerLineBytes;
    if (is_skipping_) {
      line_.clear();
    } else {
      line_.append(text);
    }
  }

  std::string line_;
  bool is_skipping_ = false;
};

}  // namespace elastic::timers
