#include "health/hang/hang_watch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>

#include "src/base/check_test_support.h"
#include "src/base/json_archive.h"

namespace elastic::hang {
namespace {

using Effects = std::vector<HangEffect>;
constexpr Phase kTrain = Phase::kTrain;

template <class Effect>
bool has(const Effects& effects) {
  return std::ranges::any_of(effects, [](const HangEffect& effect) { return std::holds_alternative<Effect>(effect); });
}

// A watch on a virtual clock, in which time goes by from one step of the watch to the next.
struct Watched {
  explicit Watched(const LimitSettings& settings = {}) : watch(settings) { tell(RoundBegan{}); }

  Effects tell(const HangEvent& event) {
    Effects effects = watch.handle(event, now_ms);
    told.insert(told.end(), effects.begin(), effects.end());
    return effects;
  }
  // Time goes by. What the watch asks for is not answered.
  Effects wait(std::int64_t ms) {
    const std::int64_t until = now_ms + ms;
    Effects all;
    while (watch.next_ms() && *watch.next_ms() <= until) {
      now_ms = std::max(now_ms, *watch.next_ms());
      const Effects effects = tell(Tick{});
      all.insert(all.end(), effects.begin(), effects.end());
    }
    now_ms = until;
    return all;
  }
  // Steps, each `step_ms` after the last one.
  void train(int steps, std::int64_t step_ms, Phase phase = kTrain) {
    for (int i = 0; i < steps; ++i) {
      wait(step_ms);
      tell(Beat{phase});
    }
  }
  // As far as evidence is collected, with a second sample that is like the first one.
  void hang(std::int64_t limit_ms) {
    wait(limit_ms);
    REQUIRE(watch.state() == HangState::kSuspect);
    wait(5'000);
    REQUIRE(told.back() == HangEffect(TakeSample{.is_second = true}));
    tell(Sampled{Sampled::Is::kSame});
    REQUIRE(watch.state() == HangState::kCollecting);
  }

  HangWatch watch;
  std::int64_t now_ms = 1'000'000;
  Effects told;
};

}  // namespace

TEST_CASE(
    "a job that stops after regular steps is suspected after the learned limit, and judged by two equal samples") {
  Watched job;
  job.train(20, 12'000);
  CHECK(job.wait(59'999).empty());
  CHECK(job.wait(1) == Effects{TakeSample{}});
  CHECK(job.watch.state() == HangState::kSuspect);
  CHECK(job.wait(5'000) == Effects{TakeSample{.is_second = true}});
  const Effects effects = job.tell(Sampled{Sampled::Is::kSame});
  CHECK(effects ==
        Effects{Collect{
            .silent_ms = 65'000, .limit = {60'000, LimitFrom::kLearned}, .phase = kTrain, .longest_gap_ms = 12'000}});
  CHECK(job.tell(Collected{}) == Effects{Judge{.is_late = false}});
  CHECK(job.watch.state() == HangState::kCollecting);
  CHECK(job.tell(Judged{}).empty());
  CHECK(job.watch.state() == HangState::kJudged);
  CHECK(job.wait(100'000'000).empty());
}

TEST_CASE("a first step of any length raises no alarm; that nothing is armed is told once") {
  Watched job({.timeout_ms = 3'000});
  CHECK(job.wait(30'000) == Effects{TellNotArmed{}});
  CHECK(job.watch.state() == HangState::kStarting);
  job.tell(Beat{});
  job.tell(RoundEnded{});
  job.tell(RoundBegan{});
  CHECK(job.wait(100'000'000).empty());
}

TEST_CASE("the first limit raises an alarm only where a flag gave it") {
  Watched job({.first_timeout_ms = 90'000});
  CHECK(job.wait(90'000) == Effects{TellNotArmed{}, TakeSample{}});
  Watched unflagged;
  CHECK(unflagged.wait(100'000'000) == Effects{TellNotArmed{}});
}

TEST_CASE("each phase has its limit: an evaluation that was seen once is no hang, and neither is the first one") {
  Watched job;
  job.train(20, 1'000);
  job.tell(Beat{Phase::kEvaluate});
  CHECK(job.wait(600'000).empty());  // the first evaluation
  job.tell(Beat{kTrain});
  job.train(20, 1'000);
  CHECK(job.wait(59'000).empty());
  CHECK(job.wait(1'000) == Effects{TakeSample{}});
  job.tell(Beat{Phase::kEvaluate});
  CHECK(job.wait(1'799'000).empty());  // five times the one before, thirty minutes at most
  CHECK(job.wait(1'000) == Effects{TakeSample{}});
}

TEST_CASE("without a word of its phases a job's evaluation is learned as its longest gap") {
  Watched job({.floor_ms = 100});
  job.train(20, 200, Phase::kUnknown);
  CHECK(job.wait(800).empty());  // four steps
  job.tell(Beat{});
  CHECK(job.wait(3'999).empty());
  CHECK(job.wait(1) == Effects{TakeSample{}});
}

TEST_CASE("what was learned holds in the next round, which begins without a limit") {
  Watched job;
  job.train(20, 20'000);
  job.tell(RoundEnded{});
  CHECK(!job.watch.next_ms());
  job.tell(RoundBegan{});
  CHECK(job.watch.state() == HangState::kStarting);
  CHECK(job.wait(600'000).empty());
  job.tell(Beat{kTrain});
  CHECK(job.watch.limit() == Limit{100'000, LimitFrom::kLearned});
}

TEST_CASE("disk activity makes the limit the longest one, and is no progress") {
  Watched job({.timeout_ms = 3'000});
  job.train(3, 1'000);
  for (int i = 0; i < 50; ++i) {
    CHECK(job.wait(2'000).empty());
    job.tell(DiskMoves{});
  }
  CHECK(job.wait(1'800'000 - 100'000 - 1).empty());
  CHECK(job.wait(1) == Effects{TakeSample{}});
  job.tell(Beat{});
  CHECK(job.wait(3'000) == Effects{TakeSample{}});
}

TEST_CASE("a suspicion ends when disks begin to move") {
  Watched job({.timeout_ms = 3'000});
  job.train(3, 1'000);
  job.wait(3'000);
  CHECK(job.watch.state() == HangState::kSuspect);
  job.tell(DiskMoves{});
  CHECK(job.watch.state() == HangState::kArmed);
}

TEST_CASE("what is told with a suspicion is why it holds when evidence is asked for, not why it began") {
  const auto limit_of = [](const Effects& effects) {
    REQUIRE(has<Collect>(effects));
    return std::get<Collect>(effects.back());
  };
  // Another section is heard of, whose limit is over, too.
  Watched job({.timeout_ms = 3'000, .sections = {{"step", 2'000}}});
  job.train(1, 1'000);
  job.wait(3'000);
  REQUIRE(job.watch.state() == HangState::kSuspect);
  job.tell(InSection{"step"});
  job.wait(5'000);
  CHECK(limit_of(job.tell(Sampled{Sampled::Is::kSame})).limit == Limit{2'000, LimitFrom::kSection});
  // The fact goes, and the limit is over by then.
  Watched stopped({.timeout_ms = 12'000});
  stopped.train(1, 1'000);
  stopped.tell(FactSeen{Fact::kStopped});
  stopped.wait(13'000);
  REQUIRE(stopped.watch.state() == HangState::kSuspect);
  stopped.tell(FactSeen{Fact::kStopped, false});
  stopped.wait(2'000);
  const Collect why = limit_of(stopped.tell(Sampled{Sampled::Is::kSame}));
  CHECK(!why.fact);
  CHECK(why.limit == Limit{12'000, LimitFrom::kFlag});
}

TEST_CASE("a suspicion in a section ends when one is heard of that may take longer") {
  Watched job({.timeout_ms = 3'000, .sections = {{"setup", 3'600'000}}});
  job.train(1, 1'000);
  job.wait(7'000);
  REQUIRE(job.watch.state() == HangState::kSuspect);
  job.tell(InSection{"setup"});
  CHECK(job.watch.state() == HangState::kArmed);
  CHECK(job.wait(3'000'000).empty());
}

TEST_CASE("progress in a suspicion ends it without a word, and while evidence is collected it withdraws the alarm") {
  Watched job;
  job.train(5, 12'000);
  job.wait(60'000);
  CHECK(job.tell(Beat{kTrain}).empty());
  CHECK(job.watch.state() == HangState::kArmed);
  CHECK(job.watch.limit() == Limit{300'000, LimitFrom::kLearned});
  job.hang(300'000);
  CHECK(job.tell(Beat{kTrain}) == Effects{Withdraw{305'000}});
  CHECK(job.watch.state() == HangState::kArmed);
  CHECK(job.tell(Collected{}).empty());
  CHECK(job.tell(Judged{}).empty());
  CHECK(job.watch.state() == HangState::kArmed);
}

TEST_CASE("progress after the verdict is told, and a later hang is found") {
  Watched job({.timeout_ms = 3'000});
  job.train(3, 1'000);
  job.hang(3'000);
  job.tell(Collected{});
  job.tell(Judged{});
  CHECK(job.tell(Beat{}) == Effects{TellRecovered{8'000}});
  job.hang(3'000);
}

TEST_CASE("after stopped workers were continued, 10 s without progress must pass, and progress withdraws the alarm") {
  for (const bool goes_on : {false, true}) {
    Watched job({.timeout_ms = 3'000});
    job.train(3, 1'000);
    job.tell(FactSeen{Fact::kStopped});
    job.hang(3'000);
    job.tell(Collected{});
    CHECK(job.tell(Judged{.continues = true}).empty());
    CHECK(job.watch.state() == HangState::kArmed);
    CHECK(job.wait(9'999).empty());
    if (goes_on) {
      job.tell(FactSeen{Fact::kStopped, false});
      CHECK(job.tell(Beat{kTrain}) == Effects{Withdraw{17'999}});
      CHECK(job.tell(Beat{kTrain}).empty());
      continue;
    }
    CHECK(job.wait(1) == Effects{TakeSample{}});
    job.wait(5'000);
    CHECK(has<Collect>(job.tell(Sampled{Sampled::Is::kSame})));
    job.tell(Collected{});
    job.tell(Judged{});
    CHECK(job.watch.state() == HangState::kJudged);
    CHECK(job.tell(Beat{kTrain}) == Effects{TellRecovered{23'000}});
  }
}

TEST_CASE("where the second sample has moved, the limit must pass again") {
  Watched job;
  job.train(5, 20'000);
  job.wait(100'000 + 5'000);
  CHECK(job.tell(Sampled{Sampled::Is::kMoved}).empty());
  CHECK(job.watch.state() == HangState::kArmed);
  CHECK(job.wait(99'999).empty());
  CHECK(job.wait(1) == Effects{TakeSample{}});
}

TEST_CASE("a sample that nobody can take, or that does not come, does not hold the alarm up") {
  Watched job;
  job.train(5, 20'000);
  job.wait(105'000);
  CHECK(has<Collect>(job.tell(Sampled{Sampled::Is::kUnknown})));
  Watched silent;
  silent.train(5, 20'000);
  silent.wait(105'000);
  CHECK(silent.wait(4'999).empty());
  CHECK(has<Collect>(silent.wait(1)));
}

TEST_CASE("nodes that do not send their evidence are waited for twenty seconds") {
  Watched job;
  job.train(5, 20'000);
  job.hang(100'000);
  CHECK(job.wait(19'999).empty());
  CHECK(job.wait(1) == Effects{Judge{.is_late = true}});
  CHECK(job.tell(Collected{}).empty());
  CHECK(job.wait(1'000'000).empty());
}

TEST_CASE("a fact that speaks for itself needs ten seconds without progress, armed or not") {
  for (const Fact fact : {Fact::kDiskWait, Fact::kStopped, Fact::kGpuLost, Fact::kDumpKey}) {
    Watched job;
    job.tell(FactSeen{fact});
    CHECK(job.wait(9'999).empty());
    CHECK(job.wait(1) == Effects{TakeSample{}});
    job.wait(5'000);
    const Effects effects = job.tell(Sampled{Sampled::Is::kSame});
    REQUIRE(has<Collect>(effects));
    CHECK(std::get<Collect>(effects.back()).fact == fact);
    CHECK(std::get<Collect>(effects.back()).limit == Limit{10'000, LimitFrom::kShortcut});
  }
}

TEST_CASE("a fact that ends, or progress beside it, raises no alarm") {
  Watched job;
  job.train(3, 1'000);
  job.tell(FactSeen{Fact::kStopped});
  job.train(30, 1'000);
  CHECK(job.told.empty());
  CHECK(job.wait(10'000) == Effects{TakeSample{}});
  job.tell(FactSeen{Fact::kStopped, false});
  CHECK(job.watch.state() == HangState::kArmed);
  CHECK(job.wait(40'000).empty());
}

TEST_CASE("ranks that wait for one that has not come to init are suspicious after the flag's limit or the first one") {
  Watched job({.timeout_ms = 3'000});
  job.tell(FactSeen{Fact::kInitKey});
  CHECK(job.wait(3'000) == Effects{TellNotArmed{}, TakeSample{}});
  Watched unflagged;
  unflagged.tell(FactSeen{Fact::kInitKey});
  CHECK(unflagged.wait(1'799'999) == Effects{TellNotArmed{}});
  CHECK(unflagged.wait(1) == Effects{TakeSample{}});
}

TEST_CASE("where storage stands, four times the limit must pass before that is the verdict") {
  Watched job;
  job.train(5, 20'000);
  job.hang(100'000);
  job.tell(Collected{});
  job.tell(Judged{.is_storage = true});
  CHECK(job.watch.state() == HangState::kArmed);
  CHECK(job.wait(299'999).empty());
  job.hang(1);
  job.tell(Collected{});
  job.tell(Judged{.is_storage = true});
  CHECK(job.watch.state() == HangState::kJudged);
  CHECK(job.tell(Beat{kTrain}) == Effects{TellRecovered{410'000}});
  job.hang(1'800'000);  // the wait for storage was a gap like any other
}

TEST_CASE("a new coordinator goes on where the old one was, and collects anew what that had begun to collect") {
  Watched job;
  job.train(20, 20'000);
  job.wait(40'000);
  HangWatch next({}, job.watch.record(job.now_ms), 77);
  CHECK(next.state() == HangState::kArmed);
  CHECK(next.next_ms() == 77 + 60'000);
  job.hang(60'000);
  HangWatch collects({}, job.watch.record(job.now_ms), 77);
  CHECK(collects.state() == HangState::kConfirmed);
  const Effects effects = collects.handle(Tick{}, 78);
  REQUIRE(has<Collect>(effects));
  CHECK(std::get<Collect>(effects.back()).silent_ms == 105'001);
  CHECK(HangWatch({}, job.watch.record(job.now_ms), 77).handle(Beat{}, 78) == Effects{Withdraw{105'001}});
  job.tell(Collected{});
  job.tell(Judged{});
  CHECK(HangWatch({}, job.watch.record(job.now_ms), 77).handle(Tick{}, 1'000'000'000).empty());
}

TEST_CASE("a record is the same after a way through another form, and is small") {
  Watched job;
  for (const Phase phase : {Phase::kSetup, Phase::kTrain, Phase::kEvaluate, Phase::kCheckpoint})
    job.train(20, 20'000, phase);
  const HangRecord record = job.watch.record(job.now_ms + 5);
  CHECK(record.silent_ms == 5);
  HangRecord read;
  const Json json = write_json(record, JsonForm::kExact);
  CHECK(read_json(json, read, JsonForm::kExact) == "");
  CHECK(read == record);
  CHECK(json.dump().size() < 1024);
}

TEST_CASE("a record that makes no sense does no harm") {
  for (int state = 0; state < 7; ++state) {
    for (const std::int64_t silent_ms : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
      for (const bool has_beat : {false, true}) {
        HangWatch watch({}, {.state = static_cast<HangState>(state), .silent_ms = silent_ms, .has_beat = has_beat}, 5);
        CHECK(failed_check([&] {
                for (std::int64_t now_ms = 6; now_ms < 10'000'000; now_ms += 1'000'000) {
                  watch.handle(Tick{}, now_ms);
                  watch.handle(Sampled{Sampled::Is::kSame}, now_ms);
                  watch.handle(Judged{}, now_ms);
                }
                watch.handle(Beat{}, 10'000'000);
              }) == "");
      }
    }
  }
}

TEST_CASE("nothing is watched before a round and after it") {
  HangWatch watch({.timeout_ms = 1});
  CHECK(watch.handle(Tick{}, 5'000'000).empty());
  CHECK(watch.handle(Beat{}, 5'000'000).empty());
  CHECK(watch.state() == HangState::kIdle);
  CHECK(!watch.next_ms());
}

TEST_CASE("a clock that goes backwards raises no alarm and breaks nothing") {
  Watched job({.timeout_ms = 3'000});
  job.train(3, 1'000);
  job.now_ms -= 500'000;
  CHECK(job.tell(Tick{}).empty());
  CHECK(job.tell(Beat{}).empty());
  CHECK(job.watch.learned().of(Phase::kUnknown).longest_ms <= 1'000);
}

TEST_CASE("a job that moves is armed again, and looked at when the limit has passed again") {
  Watched job({.timeout_ms = 3'000});
  job.train(2, 1'000);
  job.hang(3'000);
  job.tell(Collected{});
  CHECK(job.tell(Judged{.is_moving = true}).empty());
  CHECK(job.watch.state() == HangState::kArmed);
  CHECK(job.wait(2'999).empty());
  CHECK(job.wait(1) == Effects{TakeSample{}});
}

TEST_CASE("progress that is heard of late counts from when it was") {
  Watched job({.timeout_ms = 3'000});
  job.train(3, 1'000);
  job.wait(2'500);
  job.tell(Beat{kTrain, 2'000});
  CHECK(job.watch.learned().of(kTrain).longest_ms == 1'000);
  CHECK(job.wait(999).empty());
  CHECK(job.wait(1) == Effects{TakeSample{}});
  // Nor is any progress older than the one before it.
  job.tell(Beat{kTrain, 1'000'000});
  CHECK(job.watch.learned().of(kTrain).longest_ms == 1'000);
}

}  // namespace elastic::hang
