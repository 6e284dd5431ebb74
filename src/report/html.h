#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

// Bounds of the page.
inline constexpr std::size_t kPageNodes = 256;         // rows, those with failures come first
inline constexpr std::size_t kPageRoundsOfNode = 200;  // bars of a row, the last ones
inline constexpr std::size_t kPageLineBytes = 10'000;  // of one line of a worker's output

// One page that needs nothing else, no script and no network: what ended the job, a time line of
// rounds and failures with a row for each node, every failed rank with its exit, and what it said
// last. For several nodes' reports merge them first (merge.h). All texts are escaped, whatever
// bytes they have.
std::string html_page(const JobReport& report);

}  // namespace elastic::report
