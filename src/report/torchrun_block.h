#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

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
