#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace elastic::timers
