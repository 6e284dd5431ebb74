#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

inline constexpr std::size_t kSummaryTailLines = 20;       // the last lines of a worker's stderr
inline constexpr std::size_t kSummaryTracebackLines = 40;  // the last lines of a traceback
inline constexpr std::size_t kSummaryLineBytes = 2000;     // bytes of one line of either
inline constexpr std::size_t kSummaryOtherFailures = 16;   // lines about other failures
inline constexpr std::size_t kSummaryEarlierRounds = 5;    // lines about earlier rounds

// What the user reads on stderr when a job has not succeeded. The most important part comes last, for it stays on the
// screen: torchrun_block(); the traceback or the last lines of stderr of the first failure, and of the worker that most
// likely caused it; the other failures as consequences; and at the end short_report(). The text has whole lines and is
// fit for a terminal. For a job that was stopped, or where the first failure was on another node, it is short_report()
// alone; a job that failed without a worker's failure has no block. Empty for success.
std::string failure_summary(const JobReport& report);

}  // namespace elastic::report
