#pragma once

#include <cstddef>
#include <string>

#include "health/report/health_report.h"

namespace elastic::health {

// Bounds of the output.
inline constexpr std::size_t kTableAllNodes = 16;  // with more nodes, only those that are not fit have a row
inline constexpr std::size_t kTableRows = 64;
inline constexpr std::size_t kTableLinks = 16;
inline constexpr std::size_t kTableFindings = 32;

// The report for a terminal of `width` columns (0: no limit), in whole lines: a table with a row for each node, the
// worst first; then links, undetermined nodes and findings as sentences with what to do. On a terminal that is too
// narrow for the table, each node is a sentence, too. A line exceeds `width` only where a single word does.
std::string health_table(const HealthReport& report, std::size_t width);

}  // namespace elastic::health
