#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rendezvous/membership/round_forming.h"

// When nodes that stand by start a new, larger round. Times are milliseconds of one clock that does not jump.
namespace elastic::membership {

// The key scale_up.
struct ScaleUp {
  enum class When : std::uint8_t { kNow, kAfter, kOnRestart, kNever };
  When when = When::kAfter;
  std::int64_t after_ms = 1000;  // kAfter: since the last one joined
  bool operator==(const ScaleUp&) const = default;
};

// "now", "after=1.5" (seconds, from 0 to limits::kMaxTimeoutSeconds), "on-restart", "never"; nothing if it is
// none of them.
std::optional<ScaleUp> parse_scale_up(std::string_view text);

struct ScaleUpDecision {
  bool grow_now = false;
  std::optional<std::int64_t> look_again_ms;  // decide again then, or when somebody joins or leaves
};

// Whether a running round of `size` nodes is to make place for a larger one: only where the nodes that stand by
// are enough for the next multiple of the unit. With kAfter once nobody has joined for so long, so that ten
// nodes that arrive together cost one restart, but at once where no more could be taken.
ScaleUpDecision decide_scale_up(int size, int standby, std::int64_t last_join_ms, const FormingRules& rules,
                                const ScaleUp& scale_up, std::int64_t now_ms);

// The most nodes of the next round: the maximum, but with kNever no more than the first round had.
// `first_size` is 0 before it.
int size_limit(const ScaleUp& scale_up, int first_size, const FormingRules& rules);

}  // namespace elastic::membership
