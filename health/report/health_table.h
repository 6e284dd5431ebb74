#pragma once

#include <cstddef>
#include <string>

#include "health/report/health_report.h"

namespace elastic::health {

// Bounds of what is printed.
inline constexpr std::size_t kTableAllNodes = 16;  // of more nodes only those that are not fit have a row
inline constexpr std::size_t kTableRows = 64;
inline constexpr std::size_t kTableLinks = 16;
inline constexpr std::size_t kTableFindings = 32;

// The report for a terminal of `width` columns (0: no limit), in whole lines: a row for each node, worst first, then
// links, nodes that are undetermined, and findings, each as a sentence with what to do. Where the terminal is too
// narrow for the columns, each node is a sentence too. Only a word that is longer than a line is longer than `width`.
std::string health_table(const HealthReport& report, std::size_t width);

}  // namespace elastic::health
