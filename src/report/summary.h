#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

// Bounds of what is printed.
inline constexpr std::size_t kSummaryTailLines = 20;       // of a worker's stderr, the last ones
inline constexpr std::size_t kSummaryTracebackLines = 40;  // of a traceback, the last ones
inline constexpr std::size_t kSummaryLineBytes = 2000;     // of one line of either
inline constexpr std::size_t kSummaryOtherFailures = 16;   // lines about other failures
inline constexpr std::size_t kSummaryEarlierRounds = 5;    // lines about earlier rounds

// What the user is told on stderr when a job has ended otherwise than well, of which the end is on the screen:
// torchrun_block(); what is left of the first failure (its traceback or its last lines of stderr), and of who most
// likely caused it; the other failures as consequences; and as the very last thing short_report(). Whole lines, fit for
// a terminal. Of a job that was stopped, or where the first failure was on another node, short_report() alone; a job
// that failed without a failure of a worker has no block; empty for success.
std::string failure_summary(const JobReport& report);

}  // namespace elastic::report
