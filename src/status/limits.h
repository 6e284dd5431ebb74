#pragma once

#include <cstddef>

// Bounds of what /status shows. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | nodes that `/status` names; failures of a job, and finished jobs, that it remembers | {kStatusNodes};
// {kStatusFailures}; {kStatusEndedJobs} | the number of further nodes is shown; the oldest are forgotten |
inline constexpr std::size_t kStatusNodes = 1024;
inline constexpr std::size_t kStatusFailures = 16;
inline constexpr std::size_t kStatusEndedJobs = 16;

}  // namespace elastic::limits
