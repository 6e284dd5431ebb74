#include "rendezvous/election/next_leader_dialing.h"

#include <algorithm>

namespace elastic::election {

std::optional<std::int64_t> NextLeaderDialing::again_at_ms(std::int64_t dialled_ms, bool has_refused,
                                                           std::int64_t now_ms) const {
  if (now_ms >= hurries_until_ms_) return {};
  // A whole turn of refusals still takes a step, so that nodes that are all dead are not dialled without a pause.
  const bool is_turn_over = next_ % count_ == 0;
  return has_refused && !is_turn_over ? now_ms : std::max(now_ms, dialled_ms + kStepMs);
}

}  // namespace elastic::election
