#pragma once

#include <cstddef>
#include <string>

#include "health/report/health_report.h"

namespace elastic::health {

// Bounds of the page.
inline constexpr std::size_t kPageNodes = 256;  // rows, for the worst nodes
inline constexpr std::size_t kMapNodes = 64;    // with more nodes, the map shows only those of conspicuous pairs
inline constexpr std::size_t kPagePairs = 16;   // rows, for the worst pairs
inline constexpr std::size_t kPageLinks = 32;
inline constexpr std::size_t kPageFindings = 64;

// The report as one HTML page without scripts or references to other files: the result in one sentence, the links to
// check, the nodes (the worst first), a heat map of all pairs that were tested, the worst pairs, the findings, and how
// to read the page. All texts are escaped, whatever bytes they have.
std::string health_page(const HealthReport& report);

}  // namespace elastic::health
