#include "health/hang/learned_limits.h"

#include <algorithm>

namespace elastic::hang {
namespace {

constexpr std::int64_t kMostGaps = 1'000'000;                // enough to be sure
constexpr std::int64_t kLongestMs = 365LL * 24 * 3'600'000;  // a year

auto& place(auto& limits, Phase phase) {
  switch (phase) {
    case Phase::kSetup: return limits.setup;
    case Phase::kTrain: return limits.train;
    case Phase::kEvaluate: return limits.evaluate;
    case Phase::kCheckpoint: return limits.checkpoint;
    case Phase::kUnknown: break;
  }
  return limits.unknown;
}

LearnedLimits::OfPhase bounded(LearnedLimits::OfPhase phase) {
  phase.gaps = std::clamp<std::int64_t>(phase.gaps, 0, kMostGaps);
  phase.longest_ms = phase.gaps == 0 ? 0 : std::clamp<std::int64_t>(phase.longest_ms, 0, kLongestMs);
  return phase;
}

}  // namespace

const LearnedLimits::OfPhase& LearnedLimits::of(Phase phase) const { return place(*this, phase); }

void LearnedLimits::learn(Phase phase, std::int64_t gap_ms) {
  OfPhase& known = place(*this, phase);
  known.gaps = std::min(known.gaps + 1, kMostGaps);
  known.longest_ms = std::min(std::max(gap_ms, known.longest_ms), kLongestMs);
}

Limit LearnedLimits::limit(Phase phase, const LimitSettings& settings) const {
  if (settings.timeout_ms) return {*settings.timeout_ms, LimitFrom::kFlag};
  const OfPhase& known = of(phase);
  if (known.gaps == 0) return {settings.ceiling_ms, LimitFrom::kNone};
  return {std::clamp(known.longest_ms * settings.factor, settings.floor_ms, settings.ceiling_ms), LimitFrom::kLearned};
}

LearnedLimits LearnedLimits::within_bounds() const {
  return {bounded(unknown), bounded(setup), bounded(train), bounded(evaluate), bounded(checkpoint)};
}

}  // namespace elastic::hang
