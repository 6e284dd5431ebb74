#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

// Failures that the block shows at most; those that only were stopped give way first.
inline constexpr std::size_t kBlockFailures = 32;
// Of one traceback in the block: the root cause's, and each other one's, in bytes. The middle of a
// longer one is left out.
inline constexpr std::size_t kBlockRootBytes = 64 * 1024;
inline constexpr std::size_t kBlockOtherBytes = 8 * 1024;

// The failures in the shape of torchrun's ChildFailedError, which tools parse: title, borders,
// Failures, Root Cause, widths, blanks at line ends and indentation are torchrun's. Two things are
// ours: the root cause is the report's first failure (and not whose error.json bears the oldest
// time), and where there are more than kBlockFailures a line "  <968_MORE_FAILURES>" follows the
// others. Ends with a line end; empty if no worker failed by itself.
std::string torchrun_block(const JobReport& report);

}  // namespace elastic::report
