#include "health/hang/learned_limits.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "src/base/json_archive.h"

namespace elastic::hang {

TEST_CASE("a limit is five times the longest gap of its phase, between one minute and thirty") {
  const LimitSettings settings;
  LearnedLimits limits;
  limits.learn(Phase::kTrain, 2'000);
  CHECK(limits.limit(Phase::kTrain, settings) == Limit{60'000, LimitFrom::kLearned});
  limits.learn(Phase::kTrain, 40'000);
  limits.learn(Phase::kTrain, 3'000);
  CHECK(limits.limit(Phase::kTrain, settings) == Limit{200'000, LimitFrom::kLearned});
  limits.learn(Phase::kTrain, 3'600'000);
  CHECK(limits.limit(Phase::kTrain, settings) == Limit{1'800'000, LimitFrom::kLearned});
}

TEST_CASE("a phase of which nothing is known has the longest limit, whatever the others have") {
  const LimitSettings settings;
  LearnedLimits limits;
  for (const Phase phase : {Phase::kUnknown, Phase::kSetup, Phase::kTrain, Phase::kEvaluate, Phase::kCheckpoint}) {
    CHECK(limits.limit(phase, settings) == Limit{1'800'000, LimitFrom::kNone});
    limits.learn(phase, 20'000);
    CHECK(limits.limit(phase, settings) == Limit{100'000, LimitFrom::kLearned});
  }
}

TEST_CASE("a flag takes the place of what was learned") {
  LearnedLimits limits;
  limits.learn(Phase::kTrain, 40'000);
  CHECK(limits.limit(Phase::kTrain, {.timeout_ms = 3'000}) == Limit{3'000, LimitFrom::kFlag});
}

TEST_CASE("what another coordinator sends is brought within its bounds") {
  LearnedLimits sent;
  sent.train = {.gaps = -1, .longest_ms = 5};
  sent.setup = {.gaps = INT64_MAX, .longest_ms = INT64_MAX};
  sent.evaluate = {.gaps = 1, .longest_ms = -5};
  const LearnedLimits taken = sent.within_bounds();
  CHECK(taken.limit(Phase::kTrain, {}).from == LimitFrom::kNone);
  CHECK(taken.limit(Phase::kSetup, {}) == Limit{1'800'000, LimitFrom::kLearned});
  CHECK(taken.limit(Phase::kEvaluate, {}) == Limit{60'000, LimitFrom::kLearned});
  LearnedLimits again = taken;
  again.learn(Phase::kSetup, INT64_MAX);
  CHECK(again == taken);
}

TEST_CASE("limits are the same after a way through another form") {
  LearnedLimits limits;
  limits.learn(Phase::kTrain, 40'000);
  limits.learn(Phase::kCheckpoint, 70'000);
  LearnedLimits read;
  CHECK(read_json(write_json(limits, JsonForm::kExact), read, JsonForm::kExact) == "");
  CHECK(read == limits);
}

}  // namespace elastic::hang
