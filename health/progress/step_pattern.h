#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace elastic::progress {

// The expression of --progress-pattern (RE2's syntax), whose one group is the step. Matching takes time linear in the
// length of a line, and memory within a bound.
class StepPattern {
 public:
  // Fails with the reason where it is too long, is no expression, has no group or several, or needs too much memory.
  static Result<StepPattern> make(const std::string& expression);
  StepPattern(StepPattern&&) noexcept;
  StepPattern& operator=(StepPattern&&) noexcept;
  ~StepPattern();

  // The step in the first place of the line that matches; nothing where none does, or its group is no number.
  std::optional<std::int64_t> step_in(std::string_view line) const;

 private:
  struct Compiled;
  explicit StepPattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace elastic::progress
