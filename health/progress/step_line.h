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

}  // namespace elastic::progress
