#include "rendezvous/protocol/fence.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic::protocol {

std::string text_of_fence(const Fence& fence, RoundNumber round) {
  const std::int64_t birth_ms = std::clamp<std::int64_t>(fence.birth_ms, 0, kLatestBirthMs);
  return format("{:013}-{:010}-{:010}", birth_ms, fence.term, round);
}

}  // namespace elastic::protocol
