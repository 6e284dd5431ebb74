#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "health/hang/hang_judge.h"
#include "health/hang/hang_storm_test_support.h"
#include "health/hang/hang_watch.h"
#include "src/base/test_random.h"

// One rank of many is behind, and evidence is lost: the verdict is right or unknown, and never a wrong node.
namespace elastic::hang {
namespace {

struct Outcomes {
  int right = 0;
  int unknown = 0;
  int wrong = 0;
  void count(const Storm& storm) {
    const HangVerdict verdict = storm.job.judged();
    if (verdict.culprits.empty()) {
      ++(verdict.fault == Fault::kNone ? unknown : wrong);
    } else {
      ++(blamed(verdict) == std::to_string(storm.culprit) ? right : wrong);
    }
  }
};

}  // namespace

TEST_CASE("with all evidence the one rank that is behind is found, by whatever source there is") {
  for (const Sources sources : kAllSources) {
    TestRandom random(11);
    Outcomes outcomes;
    for (int i = 0; i < 20; ++i) outcomes.count(Storm(random, 8, 4, sources));
    CHECK(outcomes.right == 20);
  }
}

TEST_CASE("ten thousand ranks, one behind, a twentieth of all evidence lost: right or unknown, never a wrong node") {
  for (const Sources sources : kAllSources) {
    Outcomes outcomes;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      TestRandom random(seed);
      Storm storm(random, 1250, 8, sources);
      lose(random, storm.job, 5);
      outcomes.count(storm);
    }
    CAPTURE(static_cast<int>(sources));
    CHECK(outcomes.wrong == 0);
    if (sources != Sources::kRas) CHECK(outcomes.right >= 4);  // RAS alone has members of every data group missing
  }
}

TEST_CASE("worlds of three to a hundred ranks, any part of the evidence lost: right or unknown, never a wrong node") {
  std::array<Outcomes, kAllSources.size()> all;
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    TestRandom random(seed);
    const auto sources = static_cast<std::size_t>(seed % kAllSources.size());
    const int per_node = 1 + Storm::pick(random, 8);
    const int nodes = std::max(per_node == 1 ? 3 : per_node == 2 ? 2 : 1, 1 + Storm::pick(random, 12));
    Storm storm(random, nodes, per_node, kAllSources[sources]);
    lose(random, storm.job, Storm::pick(random, 30));
    Outcomes& outcomes = all[sources];
    outcomes.count(storm);
    CAPTURE(seed);
    CAPTURE(storm.culprit);
    CAPTURE(storm.job.judged().rule);
    CAPTURE(storm.job.judged().cause);
    CAPTURE(storm.job.judged().others);
    REQUIRE(outcomes.wrong == 0);
  }
  for (const Outcomes& outcomes : all) {
    CHECK(outcomes.right >= 100);
    CHECK(outcomes.unknown >= 20);
  }
}

TEST_CASE("no node is named in a job in which none is at fault, whatever part of the evidence is lost") {
  for (std::uint64_t seed = 0; seed < 1'200; ++seed) {
    TestRandom random(seed);
    HungJob job(3 + Storm::pick(random, 12), 1 + Storm::pick(random, 4));
    kBlameless[seed % kBlameless.size()].make(job);
    lose(random, job, Storm::pick(random, 40));
    CAPTURE(seed);
    REQUIRE(blamed(job.judged()) == "nobody");
  }
}

TEST_CASE("a coordinator that dies at any step of an alarm is followed by one that comes to the same verdict, once") {
  for (std::int64_t dies_ms = 0; dies_ms <= 100'000; dies_ms += 500) {
    HangWatch watch({});
    std::vector<HangEffect> effects;
    std::int64_t collects = 0, verdicts = 0, withdrawals = 0;
    const auto tell = [&](const HangEvent& event, std::int64_t now_ms) {
      for (const HangEffect& effect : watch.handle(event, now_ms)) {
        collects += std::holds_alternative<Collect>(effect) ? 1 : 0;
        withdrawals += std::holds_alternative<Withdraw>(effect) ? 1 : 0;
        effects.push_back(effect);
      }
    };
    tell(RoundBegan{}, 0);
    for (int step = 1; step <= 10; ++step) tell(Beat{}, step * 1'000);
    for (std::int64_t now_ms = 10'500; now_ms <= 200'000; now_ms += 500) {
      if (now_ms == 10'500 + dies_ms) {
        watch = HangWatch({}, watch.record(now_ms), now_ms);
        effects.clear();  // what was asked of the old one's driver
      }
      tell(Tick{}, now_ms);
      // The driver answers each thing that is asked of it, 500 ms later.
      const std::vector<HangEffect> asked = std::exchange(effects, {});
      for (const HangEffect& effect : asked) {
        if (effect == HangEffect(TakeSample{.is_second = true})) tell(Sampled{Sampled::Is::kSame}, now_ms);
        if (std::holds_alternative<Collect>(effect)) tell(Collected{}, now_ms);
        if (!std::holds_alternative<Judge>(effect)) continue;
        ++verdicts;
        tell(Judged{}, now_ms);
      }
    }
    CAPTURE(dies_ms);
    CHECK(watch.state() == HangState::kJudged);
    CHECK(verdicts == 1);
    CHECK(withdrawals == 0);
    CHECK(collects >= 1);
    CHECK(collects <= 2);
  }
}

}  // namespace elastic::hang
