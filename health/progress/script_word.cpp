#include "health/progress/script_word.h"

#include <string>

#include "health/progress/limits.h"
#include "health/progress/scan.h"
#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::progress {

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
