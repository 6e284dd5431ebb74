#include "health/hang/section_limits.h"

#include <doctest/doctest.h>

#include "health/hang/hang_watch.h"

namespace elastic::hang {
namespace {

const SectionLimits kLimits = {{"setup", 600'000}, {"step", 30'000}};

// A round with progress at 0 in which the rank that is silent the longest is in this section.
HangWatch watch_in(const std::string& section, const LimitSettings& settings) {
  HangWatch watch(settings);
  watch.handle(RoundBegan{}, 0);
  watch.handle(InSection{section}, 0);
  watch.handle(Beat{Phase::kTrain}, 0);
  return watch;
}

}  // namespace

TEST_CASE("a section has the limit that is given for its name") {
  CHECK(limit_of(kLimits, "setup") == 600'000);
  CHECK(limit_of(kLimits, "step") == 30'000);
  CHECK(!limit_of(kLimits, "checkpointing"));
  CHECK(!limit_of(kLimits, ""));
  CHECK(text_of(kLimits) == "setup:600 s, step:30 s");
  CHECK(text_of({}) == "none");
}

TEST_CASE("the limit of a section takes the place of the one that holds for the job, and no other section has it") {
  for (const std::optional<std::int64_t> timeout_ms :
       {std::optional<std::int64_t>(90'000), std::optional<std::int64_t>()}) {
    const LimitSettings settings{.timeout_ms = timeout_ms, .sections = kLimits};
    CHECK(watch_in("setup", settings).limit() == Limit{600'000, LimitFrom::kSection});
    CHECK(watch_in("step", settings).limit() == Limit{30'000, LimitFrom::kSection});
    const Limit of_job = timeout_ms ? Limit{90'000, LimitFrom::kFlag} : Limit{1'800'000, LimitFrom::kNone};
    for (const char* other : {"checkpointing", ""}) CHECK(watch_in(other, settings).limit() == of_job);
  }
}

TEST_CASE("an alarm comes when the limit of the section is over, and says of which one") {
  HangWatch watch = watch_in("step", {.timeout_ms = 5'000, .sections = kLimits});
  CHECK(watch.next_ms() == 30'000);
  watch.handle(Tick{}, 30'000);
  watch.handle(Tick{}, 35'000);
  const auto effects = watch.handle(Sampled{Sampled::Is::kSame}, 35'000);
  REQUIRE(effects.size() == 1);
  CHECK(std::get<Collect>(effects[0]).limit == Limit{30'000, LimitFrom::kSection});
  CHECK(watch.section() == "step");
}

TEST_CASE("a rank that goes on into another section takes the limit along, and a new round begins in none") {
  HangWatch watch = watch_in("step", {.timeout_ms = 5'000, .sections = kLimits});
  watch.handle(InSection{"setup"}, 20'000);
  CHECK(watch.next_ms() == 600'000);
  watch.handle(RoundEnded{}, 30'000);
  watch.handle(RoundBegan{}, 31'000);
  watch.handle(Beat{Phase::kTrain}, 31'000);
  CHECK(watch.limit() == Limit{5'000, LimitFrom::kFlag});
}

TEST_CASE("the next coordinator knows the section, and so does not take a long one for a hang") {
  const LimitSettings settings{.timeout_ms = 5'000, .sections = kLimits};
  const HangRecord record = watch_in("setup", settings).record(20'000);
  CHECK(record.section == "setup");
  CHECK(HangWatch(settings, record, 1'000'000).limit() == Limit{600'000, LimitFrom::kSection});
}

}  // namespace elastic::hang
