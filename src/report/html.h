#pragma once

#include <cstddef>
#include <string>

#include "src/report/failure.h"

namespace elastic::report {

inline constexpr std::size_t kPageNodes = 256;         // rows; nodes with failures come first
inline constexpr std::size_t kPageRoundsOfNode = 200;  // bars of a row; the last ones are shown
inline constexpr std::size_t kPageLineBytes = 10'000;  // bytes of one line of a worker's output

// Makes one page that needs no script and no network: what ended the job, a time line of
// rounds and failures with a row for each node, and every failed rank with its exit and its last
// output. Several nodes' reports must be merged first (merge.h). All texts are escaped, whatever
// bytes they have.
std::string html_page(const JobReport& report);

}  // namespace elastic::report
