#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "health/hang/hang_storm_test_support.h"
#include "health/hang/hang_watch.h"
#include "src/base/test_random.h"
#ifdef ELASTIC_RUN_MUTANTS
#include "tests/simulation/mutant.h"
#endif

// Judges random jobs and watches random ones, one seed after the other. It ends with 1 at the first seed whose verdict
// is wrong, or whose alarm is false or late.
//   hangs --count N [--from SEED]     300 seeds from 1 on, unless they are given
//   hangs_mutants --mutant LETTER     with a mistake of tests/mistakes.py
namespace elastic::hang {
namespace {

// What is wrong, as a clause; empty: nothing is.
std::string judge_one_behind(TestRandom& random, int lost_percent) {
  const auto sources = kAllSources[random() % kAllSources.size()];
  const int per_node = 1 + Storm::pick(random, 8);
  const int nodes = std::max(per_node == 1 ? 3 : per_node == 2 ? 2 : 1, 1 + Storm::pick(random, 12));
  Storm storm(random, nodes, per_node, sources);
  lose(random, storm.job, lost_percent);
  const HangVerdict verdict = storm.job.judged();
  const std::string who = blamed(verdict);
  const std::string right = std::to_string(storm.culprit);
  if (who == right || (lost_percent > 0 && who == "nobody" && verdict.fault == Fault::kNone)) return {};
  return "rank " + right + " is behind, and " + who + " is blamed by rule " + std::to_string(verdict.rule);
}

std::string judge_blameless(TestRandom& random, int lost_percent) {
  const Blameless& kind = kBlameless[random() % kBlameless.size()];
  HungJob job(3 + Storm::pick(random, 12), 1 + Storm::pick(random, 4));
  kind.make(job);
  lose(random, job, lost_percent);
  const HangVerdict verdict = job.judged();
  const std::string rule = std::to_string(verdict.rule);
  if (blamed(verdict) != "nobody")
    return std::string(kind.what) + ": " + blamed(verdict) + " is blamed by rule " + rule;
  if (lost_percent == 0 && verdict.rule != kind.rule) return std::string(kind.what) + ": the verdict is rule " + rule;
  return {};
}

// A job with steps of any length up to the longest one, with checkpoints that are written, or ends of alarms; then it
// hangs.
struct WatchedJob {
  HangWatch watch = HangWatch({});
  std::int64_t now_ms = 0;
  std::int64_t beat_ms = 0;
  bool collects = false;
  bool withdraws = false;
  std::int64_t alarm_ms = 0;

  void tell(const HangEvent& event) {
    for (const HangEffect& effect : watch.handle(event, now_ms)) {
      if (std::holds_alternative<Withdraw>(effect)) withdraws = true;
      if (!std::holds_alternative<Collect>(effect)) continue;
      collects = true;
      alarm_ms = now_ms;
    }
    if (std::holds_alternative<Beat>(event)) beat_ms = now_ms;
  }
  // Every second, as long as this; samples are like those before.
  void wait(std::int64_t ms, bool disks_move = false) {
    for (const std::int64_t until = now_ms + ms; now_ms < until;) {
      now_ms += std::min<std::int64_t>(1'000, until - now_ms);
      if (disks_move) tell(DiskMoves{});
      tell(Tick{});
      tell(Sampled{Sampled::Is::kSame});
    }
  }
};

std::string watch_one(TestRandom& random) {
  WatchedJob job;
  job.tell(RoundBegan{});
  job.wait(Storm::pick(random, 7'200) * 1'000);
  const std::int64_t longest_ms = 13'000 + Storm::pick(random, 60'000);
  job.tell(Beat{});
  job.wait(longest_ms);
  job.tell(Beat{});
  for (int step = Storm::pick(random, 10); step-- > 0;) {
    job.wait(1 + Storm::pick(random, static_cast<int>(4 * longest_ms)));
    job.tell(Beat{});
  }
  if (job.collects) return "there was an alarm without a hang";
  const std::int64_t limit_ms = job.watch.limit()->limit_ms;
  if (Storm::pick(random, 2) == 0) {  // a checkpoint, which is written all the time
    job.wait(1'700'000, true);
    if (job.collects) return "a checkpoint raised an alarm";
    job.wait(200'000, true);
    if (!job.collects) return "a worker that writes for ever hides a hang";
    return {};
  }
  job.wait(limit_ms + 15'000);
  if (!job.collects) return "a hang was not found";
  if (job.alarm_ms - job.beat_ms < limit_ms) return "the alarm came before its limit";
  job.tell(Beat{});
  if (!job.withdraws) return "progress did not withdraw the alarm";
  if (job.watch.state() != HangState::kArmed) return "after an alarm that was withdrawn nothing is watched";
  return {};
}

std::string run(std::uint64_t seed) {
  TestRandom random(seed);
  const int lost_percent = seed % 3 == 0 ? 0 : Storm::pick(random, 40);
  switch (seed / 3 % 3) {
    case 0: return judge_one_behind(random, lost_percent);
    case 1: return judge_blameless(random, lost_percent);
    default: return watch_one(random);
  }
}

}  // namespace
}  // namespace elastic::hang

int main(int argc, char** argv) {
  std::uint64_t from = 1;
  std::uint64_t count = 300;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
#ifdef ELASTIC_RUN_MUTANTS
    if (option == "--mutant") elastic::mutant::active = argv[i + 1][0];
#endif
    if (option == "--count") count = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--from") from = std::strtoull(argv[i + 1], nullptr, 10);
  }
  for (std::uint64_t seed = from; seed < from + count; ++seed) {
    const std::string wrong = elastic::hang::run(seed);
    if (wrong.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), wrong.c_str());
    return 1;
  }
  std::printf("%llu seeds: no verdict is wrong, no alarm false or late\n", static_cast<unsigned long long>(count));
  return 0;
}
