#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/exit_status.h"
#include "src/base/fields.h"
#include "src/report/hang.h"

namespace elastic::report {

// A file timer of torchelastic that was not released in time, and for which elastic-run has signalled a worker or a
// process that it has started (docs/hangs.md).
struct ExpiredTimer {
  std::string scope = {};    // the timer's name
  std::int64_t late_ms = 0;  // how long it had expired when the signal was sent
  int signal = 0;            // 0: none was wanted, nor sent
  std::int64_t pid = 0;      // of the process that had set it
  HangStack stack = {};      // where Python stood then, by its main thread, the newest call first
  std::string problem = {};  // why that is not known, as a clause
  bool operator==(const ExpiredTimer&) const = default;

  static void fields(auto& io, auto& v) {
    each(io, "scope", v.scope, "late_ms", v.late_ms);
    io("signal", v.signal, at_most(127));
    io("pid", v.pid);
    io("stack", v.stack, at_most(kHangFrames));
    io("problem", v.problem);
  }
};

// "its timer 'load'" of the worker with that pid; of a process that it has started "the timer 'load' of its process
// 4712".
std::string timer_name(const ExpiredTimer& timer, std::int64_t worker);

// "load_batch train.py:12"; empty: it is not known.
std::string timer_place(const ExpiredTimer& timer);

// Whether a worker with that pid may have ended because of the timer's signal, so many ms after it was sent: by that
// signal, or, as it may have been caught or sent to a process of it, in some other way within 30 s.
bool may_have_ended(const ExpiredTimer& timer, std::int64_t worker, const ExitStatus& exit, std::int64_t after_ms);

// Leaves out the oldest calls, so that the stack has at most so many bytes.
void shorten_stack(ExpiredTimer& timer, std::size_t most_bytes);

}  // namespace elastic::report
