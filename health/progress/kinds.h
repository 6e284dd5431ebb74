#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

// What is known of how far a rank has come (docs/progress.md).
namespace elastic::progress {

// Where a step was read, the less trusted first: the step that is shown is that of the last of these that has spoken.
enum class Source : std::uint8_t {
  kLines,        // a line that recurs with a rising number
  kHuggingFace,  // the figures of transformers.Trainer: they have an epoch, and no step
  kTqdm,         // a bar of tqdm
  kLightning,
  kDeepSpeed,
  kNemo,
  kTorchtitan,
  kMegatron,
  kPattern,  // --progress-pattern
  kMetrics,  // DLRover's runtime-metrics file
  kScript,   // ELASTIC_RUN_PROGRESS
  kNvrx,     // heartbeats and sections of NVRx's client
};
constexpr auto names_of(Source) {
  return std::array{"lines",  "hf-trainer", "tqdm",     "lightning",        "deepspeed",
                    "nemo",   "torchtitan", "megatron", "progress-pattern", "runtime-metrics",
                    "script", "nvrx"};
}
constexpr const char* name_of(Source source) { return names_of(source)[static_cast<std::size_t>(source)]; }

enum class Phase : std::uint8_t { kUnknown, kSetup, kTrain, kEval, kCheckpoint };
constexpr auto names_of(Phase) { return std::array{"unknown", "setup", "train", "eval", "checkpoint"}; }
constexpr const char* name_of(Phase phase) { return names_of(phase)[static_cast<std::size_t>(phase)]; }

// How far a rank was when it was looked at.
struct Progress {
  std::optional<std::int64_t> step = {};  // the last of training; nothing: what the source says has no step
  // Thousandths of a step per second, over the last steps; falls while no step comes. Nothing: one step so far.
  std::optional<std::int64_t> millisteps_per_second = {};
  std::int64_t age_ms = 0;  // since the last sign of progress
  Source source = Source::kLines;
  Phase phase = Phase::kUnknown;
  std::string section = {};  // the innermost that NVRx's client has opened; empty: none is open
  bool operator==(const Progress&) const = default;
};

}  // namespace elastic::progress
