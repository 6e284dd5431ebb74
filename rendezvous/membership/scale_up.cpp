#include "rendezvous/membership/scale_up.h"

#include <algorithm>
#include <cmath>

#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::membership {

std::optional<ScaleUp> parse_scale_up(std::string_view text) {
  using When = ScaleUp::When;
  if (text == "now") return ScaleUp{.when = When::kNow};
  if (text == "on-restart") return ScaleUp{.when = When::kOnRestart};
  if (text == "never") return ScaleUp{.when = When::kNever};
  constexpr std::string_view kAfterPrefix = "after=";
  if (!text.starts_with(kAfterPrefix)) return std::nullopt;
  const auto seconds = parse_float(text.substr(kAfterPrefix.size()));
  if (!seconds || *seconds < 0 || *seconds > static_cast<double>(limits::kMaxTimeoutSeconds)) return std::nullopt;
  return ScaleUp{.when = When::kAfter, .after_ms = std::llround(*seconds * 1000)};
}

ScaleUpDecision decide_scale_up(int size, int standby, std::int64_t last_join_ms, const FormingRules& rules,
                                const ScaleUp& scale_up, std::int64_t now_ms) {
  const int larger = round_size(size + standby, rules);
  if (larger <= size) return {};
  switch (scale_up.when) {
    case ScaleUp::When::kNow: return {.grow_now = true, .look_again_ms = {}};
    case ScaleUp::When::kAfter: {
      const std::int64_t settled_ms = last_join_ms + scale_up.after_ms;
      const bool full = larger == round_size(rules.max_nodes, rules);
      if (full || now_ms >= settled_ms) return {.grow_now = true, .look_again_ms = {}};
      return {.grow_now = false, .look_again_ms = settled_ms};
    }
    case ScaleUp::When::kOnRestart:
    case ScaleUp::When::kNever: break;
  }
  return {};
}

int size_limit(const ScaleUp& scale_up, int first_size, const FormingRules& rules) {
  if (scale_up.when != ScaleUp::When::kNever || first_size <= 0) return rules.max_nodes;
  return std::min(first_size, rules.max_nodes);
}

}  // namespace elastic::membership
