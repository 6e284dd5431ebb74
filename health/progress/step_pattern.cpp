#include "health/progress/step_pattern.h"

#include <re2/re2.h>

#include <array>
#include <utility>

#include "health/progress/limits.h"
#include "health/progress/scan.h"
#include "src/base/text.h"

namespace elastic::progress {
namespace {

RE2::Options options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(limits::kProgressPatternMemory);
  options.set_encoding(RE2::Options::EncodingLatin1);  // a line may have any bytes
  return options;
}

}  // namespace

struct StepPattern::Compiled {
  explicit Compiled(const std::string& text) : expression(text, options()) {}
  RE2 expression;
};

StepPattern::StepPattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
StepPattern::StepPattern(StepPattern&&) noexcept = default;
StepPattern& StepPattern::operator=(StepPattern&&) noexcept = default;
StepPattern::~StepPattern() = default;

Result<StepPattern> StepPattern::make(const std::string& expression) {
  const std::string what = format("--progress-pattern={}", printable(expression, 80));
  if (expression.size() > limits::kProgressPatternBytes) {
    return fail(what, format("it has {} bytes; {} is the most", expression.size(), limits::kProgressPatternBytes),
                "give a shorter expression");
  }
  auto compiled = std::make_unique<Compiled>(expression);
  if (!compiled->expression.ok()) {
    return fail(what, compiled->expression.error(), "write it in RE2's syntax (github.com/google/re2/wiki/Syntax)");
  }
  const int groups = compiled->expression.NumberOfCapturingGroups();
  if (groups != 1) {
    return fail(what, groups == 0 ? "it has no group" : format("it has {} groups", groups),
                "put parentheses around the step alone, as in 'batch (\\d+) of', and write others as (?:...)");
  }
  return StepPattern(std::move(compiled));
}

std::optional<std::int64_t> StepPattern::step_in(std::string_view line) const {
  const re2::StringPiece text(line.data(), line.size());
  std::array<re2::StringPiece, 2> found;
  if (!compiled_->expression.Match(text, 0, text.size(), RE2::UNANCHORED, found.data(), 2)) return {};
  Scanner at(std::string_view(found[1].data(), found[1].size()));
  const auto step = at.blanks().integer();
  if (!step || !at.blanks().rest().empty()) return {};
  return step;
}

}  // namespace elastic::progress
