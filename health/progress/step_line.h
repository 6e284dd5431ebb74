#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "health/progress/kinds.h"

namespace elastic::progress {

// A line that says how far a rank is, as a framework prints it.
struct StepLine {
  Source source = Source::kTqdm;
  std::optional<std::int64_t> step = {};
  std::int64_t position = 0;  // rises with progress; the step, where there is one
  // Lines of one rank with the same number count the same thing: a bar and its length, for example.
  std::uint64_t counter = 0;
  std::int64_t total = 0;  // the length of a bar; 0: it has none, or this is no bar
  Phase phase = Phase::kUnknown;
  bool operator==(const StepLine&) const = default;
};

// Reads one line, without its end and without colours. Nothing where it is of none of the frameworks that
// docs/progress.md lists.
std::optional<StepLine> read_step_line(std::string_view line);

// What a script says by one line.
struct ScriptWord {
  std::optional<std::int64_t> step = {};
  std::optional<Phase> phase = {};
  bool operator==(const ScriptWord&) const = default;
};

// A line of ELASTIC_RUN_PROGRESS: "step=N phase=train|eval|checkpoint|setup", either of them or both, with blanks
// between them; other words are passed over. Nothing where neither is there.
std::optional<ScriptWord> read_script_word(std::string_view line);

// DLRover's runtime-metrics file: {"step": N, "timestamp": T}.
struct MetricsFile {
  std::int64_t step = 0;
  std::optional<std::int64_t> written_ms = {};  // T, by the clock of the script
  bool operator==(const MetricsFile&) const = default;
};

// Nothing where the file is something else, or is being written.
std::optional<MetricsFile> read_metrics_file(std::string_view text);

}  // namespace elastic::progress
