#include "health/progress/rank_progress.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <string>

using namespace elastic::progress;

namespace {

constexpr auto kOut = RankProgress::Stream::kOut;
constexpr auto kErr = RankProgress::Stream::kErr;

std::string megatron(int iteration) { return " iteration " + std::to_string(iteration) + "/ 500 | loss: 1.0 |\n"; }
std::string bar(const std::string& label, int done, int total) {
  return "\r" + label + " 1%|  | " + std::to_string(done) + "/" + std::to_string(total) + " [00:01<00:09, 1it/s]\r";
}
// "step 3 of megatron, train, 0 ms ago"
std::string text(const RankProgress& rank, std::int64_t now_ms) {
  const auto progress = rank.at(now_ms);
  if (!progress) return "not seen";
  return "step " + (progress->step ? std::to_string(*progress->step) : "none") + " of " + name_of(progress->source) +
         ", " + name_of(progress->phase) + ", " + std::to_string(progress->age_ms) + " ms ago";
}

}  // namespace

TEST_CASE("a rank that has shown no progress has none") {
  RankProgress rank(nullptr);
  rank.wrote(kOut, "Hello, 12 workers\nloading\n", 0);
  CHECK(text(rank, 5) == "not seen");
}

TEST_CASE("a step that rises is progress, on either stream") {
  RankProgress rank(nullptr);
  rank.wrote(kOut, megatron(10), 1000);
  CHECK(text(rank, 1500) == "step 10 of megatron, train, 500 ms ago");
  rank.wrote(kErr, megatron(20), 2000);
  CHECK(text(rank, 2000) == "step 20 of megatron, train, 0 ms ago");
  CHECK(rank.at(2000)->millisteps_per_second == 10'000);
}

TEST_CASE("a line that repeats its step is no progress") {
  RankProgress rank(nullptr);
  rank.wrote(kOut, megatron(10), 1000);
  for (int i = 2; i < 100; ++i) rank.wrote(kOut, megatron(10), 1000 * i);
  CHECK(text(rank, 100'000) == "step 10 of megatron, train, 99000 ms ago");
  CHECK(rank.beats() == 1);
}

TEST_CASE("a step that begins again is no progress until it rises") {
  RankProgress rank(nullptr);
  rank.wrote(kOut, megatron(10), 1000);
  rank.wrote(kOut, megatron(3), 2000);
  CHECK(rank.beats() == 1);
  rank.wrote(kOut, megatron(4), 3000);
  CHECK(text(rank, 3000) == "step 4 of megatron, train, 0 ms ago");
}

TEST_CASE("an evaluation is progress, and leaves the step of training") {
  RankProgress rank(nullptr);
  rank.wrote(kErr, bar("", 100, 500), 1000);
  rank.wrote(kErr, bar("Evaluating:", 5, 20), 2000);
  CHECK(text(rank, 2000) == "step 100 of tqdm, eval, 0 ms ago");
  rank.wrote(kErr, bar("", 101, 500), 3000);
  CHECK(text(rank, 3000) == "step 101 of tqdm, unknown, 0 ms ago");
}

TEST_CASE("a shorter bar does not take the place of a longer one, until that is silent for a minute") {
  RankProgress rank(nullptr);
  rank.wrote(kErr, bar("", 100, 500), 1000);
  rank.wrote(kErr, bar("", 5, 20), 2000);
  CHECK(text(rank, 2000) == "step 100 of tqdm, unknown, 0 ms ago");
  rank.wrote(kErr, bar("", 6, 20), 61'000);
  CHECK(text(rank, 61'000) == "step 6 of tqdm, unknown, 0 ms ago");
}

TEST_CASE("a bar of setting up shows no step") {
  RankProgress rank(nullptr);
  rank.wrote(kErr, bar("Map:", 100, 500), 1000);
  CHECK(text(rank, 1000) == "step none of tqdm, setup, 0 ms ago");
}

TEST_CASE("a framework's line is trusted more than a bar") {
  RankProgress rank(nullptr);
  rank.wrote(kErr, bar("", 100, 500), 1000);
  rank.wrote(kOut, megatron(7), 2000);
  rank.wrote(kErr, bar("", 101, 500), 3000);
  CHECK(text(rank, 3000) == "step 7 of megatron, train, 0 ms ago");
}

TEST_CASE("figures without a step are progress") {
  RankProgress rank(nullptr);
  rank.wrote(kOut, "{'loss': 2.3, 'epoch': 0.02}\n", 1000);
  CHECK(text(rank, 1000) == "step none of hf-trainer, train, 0 ms ago");
  rank.wrote(kOut, "{'loss': 2.3, 'epoch': 0.02}\n", 2000);
  CHECK(rank.beats() == 1);
}

TEST_CASE("with a pattern only lines that match it count") {
  RankProgress rank(std::make_shared<StepPattern>(*StepPattern::make("lap (\\d+)")));
  rank.wrote(kOut, megatron(7), 1000);
  CHECK(text(rank, 1000) == "not seen");
  rank.wrote(kOut, "lap 3\nlap 4\n", 2000);
  CHECK(text(rank, 2000) == "step 4 of progress-pattern, unknown, 0 ms ago");
}

TEST_CASE("a script's word is trusted most, and garbage between is passed over") {
  RankProgress rank(nullptr);
  rank.wrote(kOut, megatron(7), 1000);
  rank.said("step=5 phase=train\nnonsense\n\x01\x02\n", 2000);
  rank.wrote(kOut, megatron(8), 3000);
  CHECK(text(rank, 3000) == "step 5 of script, train, 0 ms ago");
  rank.said("phase=checkpoint\n", 4000);
  CHECK(text(rank, 5000) == "step 5 of script, checkpoint, 1000 ms ago");
  rank.said("phase=checkpoint\nstep=5\n", 6000);
  CHECK(text(rank, 6000) == "step 5 of script, checkpoint, 0 ms ago");
  rank.said("phase=checkpoint\nstep=5\n", 7000);
  CHECK(rank.beats() == 5);
}

TEST_CASE("a script's evaluation leaves the step of training") {
  RankProgress rank(nullptr);
  rank.said("step=5 phase=train\nstep=1 phase=eval\nstep=2 phase=eval\n", 1000);
  CHECK(text(rank, 1000) == "step 5 of script, eval, 0 ms ago");
  CHECK(rank.beats() == 3);
}

TEST_CASE("a script's steps are not of the phase that a bar was of") {
  RankProgress rank(nullptr);
  rank.wrote(kErr, "Loading checkpoint shards:  50%|#####     | 1/2 [00:01<00:01,  1.0it/s]\r", 1000);
  rank.said("step=5\n", 2000);
  CHECK(text(rank, 2000).starts_with("step 5 of script"));
}

TEST_CASE("the content of a runtime-metrics file is progress where its step rises") {
  RankProgress rank(nullptr);
  rank.has_metrics(R"({"step": 3, "timestamp": 1})", 1000);
  rank.has_metrics(R"({"step": 3, "timestamp": 2})", 2000);
  CHECK(text(rank, 2000) == "step 3 of runtime-metrics, train, 1000 ms ago");
}

TEST_CASE("what NVRx's client says is progress, and leaves the step that is shown where it has none") {
  RankProgress rank(nullptr);
  rank.heard({.phase = Phase::kSetup}, 1000);
  CHECK(text(rank, 1000) == "step none of nvrx, setup, 0 ms ago");
  rank.wrote(kOut, megatron(7), 2000);
  rank.heard({.phase = Phase::kCheckpoint}, 3000);
  CHECK(text(rank, 3000) == "step 7 of megatron, checkpoint, 0 ms ago");
  rank.heard({.iteration = 118, .phase = Phase::kTrain}, 4000);
  rank.heard({.iteration = 118, .phase = Phase::kTrain}, 5000);
  CHECK(text(rank, 5000) == "step 118 of nvrx, train, 0 ms ago");
  CHECK(rank.beats() == 5);
}

TEST_CASE("what a rank writes costs no memory that grows with it") {
  RankProgress rank(nullptr);
  const auto write_all = [&](int from) {
    std::int64_t now_ms = from;
    for (int i = from; i < from + 5000; ++i, now_ms += 100) {
      rank.wrote(kOut, std::string(static_cast<std::size_t>(i % 700), 'x') + std::to_string(i) + "\n", now_ms);
      rank.wrote(kErr, bar("b" + std::to_string(i), i, 9999 + i), now_ms);
      rank.said("step=" + std::to_string(i) + "\n", now_ms);
    }
  };
  write_all(0);
  const std::size_t before = mallinfo2().uordblks;
  write_all(5000);
  CHECK(mallinfo2().uordblks <= before + 4096);
}
