#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rendezvous/membership/round_forming.h"

// When standby nodes cause a new, larger round. Times are milliseconds of one clock that does not jump.
namespace elastic::membership {

// The value of scale_up in --rdzv-conf.
struct ScaleUp {
  enum class When : std::uint8_t { kNow, kAfter, kOnRestart, kNever };
  When when = When::kAfter;
  std::int64_t after_ms = 1000;  // kAfter: how long after the last node has joined
  bool operator==(const ScaleUp&) const = default;
};

// Parses "now", "after=1.5" (seconds, from 0 to limits::kMaxTimeoutSeconds), "on-restart" and "never"; empty if the
// text is none of them.
std::optional<ScaleUp> parse_scale_up(std::string_view text);

struct ScaleUpDecision {
  bool grow_now = false;
  std::optional<std::int64_t> look_again_ms;  // decide again then, or when a node joins or leaves
};

// Whether a running round of `size` nodes is to be stopped for a larger one: only if the standby nodes are enough for
// the next multiple of the unit. kAfter waits until no node has joined for after_ms, so that ten nodes that arrive
// together cost one restart; it does not wait if the round would have its maximum.
ScaleUpDecision decide_scale_up(int size, int standby, std::int64_t last_join_ms, const FormingRules& rules,
                                const ScaleUp& scale_up, std::int64_t now_ms);

// The maximum of nodes of the next round; with kNever no more than the first round had. `first_size` is 0 before the
// first round.
int size_limit(const ScaleUp& scale_up, int first_size, const FormingRules& rules);

}  // namespace elastic::membership
