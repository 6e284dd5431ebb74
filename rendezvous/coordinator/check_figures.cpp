#include "rendezvous/coordinator/check_figures.h"

#include <algorithm>

namespace elastic::coordinator {

status::Check check_figures(const health::HealthReport& report) {
  status::Check check{.round = report.round, .bad_links = static_cast<std::int64_t>(report.bad_links.size())};
  for (const health::NodeHealth& node : report.nodes) {
    switch (health::standing_of(node)) {
      case health::Standing::kFit: ++check.fit; break;
      case health::Standing::kSlow: ++check.slow; break;
      case health::Standing::kFaulty: ++check.faulty; break;
      case health::Standing::kUndetermined: ++check.undetermined; break;
    }
  }
  check.seconds = health::took_ms(report).value_or(0) / 1000;
  for (const health::PairHealth& pair : report.pairs) {
    const auto gbps = health::busbw_gbps(report, pair, health::judged_way(report));
    if (!gbps) continue;
    const double bytes = *gbps * 1e9;
    check.slowest_busbw_bytes = std::min(check.slowest_busbw_bytes.value_or(bytes), bytes);
  }
  return check;
}

}  // namespace elastic::coordinator
