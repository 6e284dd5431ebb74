#include "health/check/check_figures.h"

#include <algorithm>

namespace elastic::health {

status::Check check_figures(const HealthReport& report) {
  status::Check check{.round = report.round, .bad_links = static_cast<std::int64_t>(report.bad_links.size())};
  for (const NodeHealth& node : report.nodes) {
    switch (standing_of(node)) {
      case Standing::kFit: ++check.fit; break;
      case Standing::kSlow: ++check.slow; break;
      case Standing::kFaulty: ++check.faulty; break;
      case Standing::kUndetermined: ++check.undetermined; break;
    }
  }
  check.seconds = took_ms(report).value_or(0) / 1000;
  for (const PairHealth& pair : report.pairs) {
    const auto gbps = busbw_gbps(report, pair, judged_way(report));
    if (!gbps) continue;
    const double bytes = *gbps * 1e9;
    check.slowest_busbw_bytes = std::min(check.slowest_busbw_bytes.value_or(bytes), bytes);
  }
  return check;
}

}  // namespace elastic::health
