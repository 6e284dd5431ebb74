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

// The most failures that the block shows; workers that were only stopped are left out first.
inline constexpr std::size_t kBlockFailures = 32;
// The most bytes of one traceback in the block: that of the root cause, and of each other one. The middle of a
// longer one is left out.
inline constexpr std::size_t kBlockRootBytes = 64 * 1024;
inline constexpr std::size_t kBlockOtherBytes = 8 * 1024;

// Formats the failures like torchrun's ChildFailedError, which tools parse: title, borders,
// Failures, Root Cause, widths, blanks at line ends and indentation are torchrun's. Two things
// differ: the root cause is the report's first failure (not the one whose error.json has the oldest
// time), and where there are more than kBlockFailures a line "  <968_MORE_FAILURES>" follows the
// others. Ends with a line end; empty if no worker failed by itself.
std::string torchrun_block(const JobReport& report);

}  // namespace elastic::report
