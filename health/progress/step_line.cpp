#include "health/progress/step_line.h"

#include <algorithm>
#include <array>
#include <string>

#include "health/progress/limits.h"
#include "health/progress/scan.h"
#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::progress {
namespace {

// One epoch in the position of a line that has no step.
constexpr std::int64_t kEpoch = 1'000'000;

StepLine of_step(Source source, std::int64_t step, Phase phase, std::uint64_t counter = 0) {
  return {.source = source, .step = step, .position = step, .counter = counter, .phase = phase};
}

// " [2026-01-02 03:04:05] iteration       10/     500 | consumed samples: ...", and NeMo's
// "Training epoch 0, iteration 9/99 | lr: ... | global_step: 9 | ..."
std::optional<StepLine> of_megatron_or_nemo(std::string_view line) {
  auto at = after_word(line, "iteration");
  if (!at) return {};
  const auto iteration = at->blanks().integer();
  if (!iteration) return {};
  if (after_word(line, "validation loss at")) return of_step(Source::kMegatron, *iteration, Phase::kEval, 1);
  if (!at->blanks().skip("/")) return {};
  const auto total = at->blanks().integer();
  if (!total) return {};
  if (auto global = after_word(line, "global_step:")) {
    const auto step = global->blanks().integer();
    if (step) return of_step(Source::kNemo, *step, Phase::kTrain);
  }
  if (after_word(line, "Validation")) {
    return of_step(Source::kNemo, *iteration, Phase::kEval, static_cast<std::uint64_t>(*total) + 1);
  }
  if (!at->blanks().skip("|")) return {};
  return of_step(Source::kMegatron, *iteration, Phase::kTrain);
}

// "step: 10  loss:  7.1234  grad_norm: ...", "validate step: 10  loss: ..."
std::optional<StepLine> of_torchtitan(std::string_view line) {
  auto at = after_word(line, "step:");
  if (!at) return {};
  const auto step = at->blanks().integer();
  if (!step || !at->blanks().skip("loss:")) return {};
  const bool validates = line.substr(0, at->at()).find("validate step:") != std::string_view::npos;
  return of_step(Source::kTorchtitan, *step, validates ? Phase::kEval : Phase::kTrain, validates ? 1 : 0);
}

// "[Rank 0] step=10, skipped=0, lr=[...]", "epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec=..."
std::optional<StepLine> of_deepspeed(std::string_view line) {
  if (auto at = after_word(line, "step=")) {
    const auto step = at->integer();
    if (step && at->skip(", skipped=")) return of_step(Source::kDeepSpeed, *step, Phase::kTrain);
  }
  if (auto at = after_word(line, "global_step=")) {
    const auto step = at->integer();
    if (step && at->rest().find("SamplesPerSec") != std::string_view::npos) {
      return of_step(Source::kDeepSpeed, *step, Phase::kTrain);
    }
  }
  return {};
}

// "{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 4.9e-05, 'epoch': 0.02}"; newer ones quote the numbers.
std::optional<StepLine> of_hugging_face(std::string_view line) {
  const std::size_t found = line.find("'epoch': ");
  if (found == std::string_view::npos || line.find('{') > found) return {};
  Scanner at(line, found + 9);
  at.skip("'");
  const auto epoch = at.decimal(kEpoch);
  if (!epoch) return {};
  const bool evaluates = line.find("'eval_") != std::string_view::npos;
  return StepLine{.source = Source::kHuggingFace,
                  .position = *epoch,
                  .counter = evaluates ? 1U : 0U,
                  .phase = evaluates ? Phase::kEval : Phase::kTrain};
}

// What a bar counts, by the words before it. The first that is found decides.
struct BarWord {
  std::string_view word;
  Phase phase;
};
constexpr std::array<BarWord, 15> kBarWords = {{{"valid", Phase::kEval},
                                                {"eval", Phase::kEval},
                                                {"sanity", Phase::kEval},
                                                {"test", Phase::kEval},
                                                {"predict", Phase::kEval},
                                                {"load", Phase::kSetup},
                                                {"map", Phase::kSetup},
                                                {"filter", Phase::kSetup},
                                                {"tokeniz", Phase::kSetup},
                                                {"generating", Phase::kSetup},
                                                {"fetch", Phase::kSetup},
                                                {"index", Phase::kSetup},
                                                {"saving", Phase::kCheckpoint},
                                                {"checkpoint", Phase::kCheckpoint},
                                                {"upload", Phase::kCheckpoint}}};

Phase phase_of_bar(std::string_view label) {
  const std::string words = lower(label.substr(0, 64));
  const auto found =
      std::ranges::find_if(kBarWords, [&](const BarWord& each) { return words.find(each.word) != std::string::npos; });
  return found == kBarWords.end() ? Phase::kUnknown : found->phase;
}

// The number that ends before `end`, with the suffix that tqdm's unit_scale gives it: "1.23k".
std::optional<std::int64_t> number_before(std::string_view line, std::size_t end, std::size_t& begin) {
  std::int64_t unit = 1000;
  std::size_t last = end;
  if (last > 0) {
    switch (line[last - 1]) {
      case 'k': unit = 1'000'000; break;
      case 'M': unit = 1'000'000'000; break;
      case 'G': unit = 1'000'000'000'000; break;
      default: break;
    }
    if (unit != 1000) --last;
  }
  begin = last;
  while (begin > 0 && (is_digit(line[begin - 1]) || line[begin - 1] == '.')) --begin;
  Scanner at(line.substr(0, last), begin);
  const auto value = at.decimal(unit);
  if (!value || at.at() != last) return {};
  return *value / 1000;
}

// "Epoch 3:  42%|####2     | 21/50 [00:10<00:14,  2.05it/s]", "21it [00:10, 2.05it/s]"
std::optional<StepLine> of_bar(std::string_view line) {
  std::size_t bracket = line.find(" [");
  for (; bracket != std::string_view::npos; bracket = line.find(" [", bracket + 1)) {
    Scanner time(line, bracket + 2);
    if (time.integer() && time.skip(":")) break;
  }
  if (bracket == std::string_view::npos) return {};
  std::string_view head = line.substr(0, bracket);
  std::size_t begin = 0;
  std::int64_t total = 0;
  if (head.ends_with("it")) {
    head.remove_suffix(2);
  } else {
    const std::size_t slash = head.rfind('/');
    if (slash == std::string_view::npos) return {};
    if (head.substr(slash + 1) != "?") {
      const auto length = number_before(head, head.size(), begin);
      if (!length || begin != slash + 1) return {};
      total = *length;
    }
    head = head.substr(0, slash);
  }
  const auto done = number_before(head, head.size(), begin);
  if (!done) return {};
  // The label ends before the percentage; a bar without one may have none.
  std::string_view label = head.substr(0, begin);
  label = label.substr(0, label.find('%'));
  while (!label.empty() && (is_digit(label.back()) || label.back() == ' ')) label.remove_suffix(1);
  const std::uint64_t counter = hash_with(kHashBegin, label) ^ static_cast<std::uint64_t>(total);
  Scanner epoch_at(trim(label));
  if (epoch_at.skip("Epoch ") && total > 0) {
    const auto epoch = epoch_at.integer();
    if (epoch && epoch_at.skip(":") && *epoch < INT64_MAX / kEpoch / total) {
      return of_step(Source::kLightning, *epoch * total + *done, Phase::kTrain, static_cast<std::uint64_t>(total));
    }
  }
  StepLine bar = of_step(Source::kTqdm, *done, phase_of_bar(label), counter);
  bar.total = total;
  return bar;
}

}  // namespace

std::optional<StepLine> read_step_line(std::string_view line) {
  for (const auto read : {of_megatron_or_nemo, of_torchtitan, of_deepspeed, of_hugging_face, of_bar}) {
    if (auto found = read(line)) return found;
  }
  return {};
}

std::optional<ScriptWord> read_script_word(std::string_view line) {
  ScriptWord word;
  for (Scanner at(line); !at.blanks().rest().empty();) {
    const std::string_view token = at.rest().substr(0, at.rest().find_first_of(" \t"));
    at.skip(token);
    Scanner inside(token);
    if (inside.skip("step=")) {
      const auto step = inside.integer();
      if (step && inside.rest().empty()) word.step = step;
    } else if (inside.skip("phase=")) {
      for (const Phase phase : {Phase::kSetup, Phase::kTrain, Phase::kEval, Phase::kCheckpoint}) {
        if (inside.rest() == name_of(phase)) word.phase = phase;
      }
    }
  }
  if (!word.step && !word.phase) return {};
  return word;
}

std::optional<MetricsFile> read_metrics_file(std::string_view text) {
  if (text.size() > limits::kProgressFileBytes || !json_over_bounds(text, 4, 64).empty()) return {};
  const auto json = Json::parse(text, "the runtime metrics");
  if (!json) return {};
  const Json* step = json->find("step");
  if (step == nullptr) return {};
  const auto number = step->as_integer();
  if (!number || *number < 0) return {};
  MetricsFile file{.step = *number};
  const Json* written = json->find("timestamp");
  const auto seconds = written == nullptr ? std::nullopt : written->as_number();
  constexpr double kMostSeconds = 1e12;
  if (seconds && *seconds >= 0 && *seconds < kMostSeconds) file.written_ms = static_cast<std::int64_t>(*seconds * 1000);
  return file;
}

}  // namespace elastic::progress
