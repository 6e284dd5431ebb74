#pragma once

#include <cstddef>
#include <string>

#include "health/report/health_report.h"

namespace elastic::health {

// Bounds of the page.
inline constexpr std::size_t kPageNodes = 256;  // rows, the worst
inline constexpr std::size_t kMapNodes = 64;    // of more nodes the map has those alone that are not as they should be
inline constexpr std::size_t kPagePairs = 16;   // rows, the worst
inline constexpr std::size_t kPageLinks = 32;
inline constexpr std::size_t kPageFindings = 64;

// One page that needs nothing else, no script and no network: the outcome in one sentence, the links to look at, the
// nodes worst first, a heat map of all pairs that were tested, the worst pairs, findings, and how to read it. All texts
// are escaped, whatever bytes they have.
std::string health_page(const HealthReport& report);

}  // namespace elastic::health
