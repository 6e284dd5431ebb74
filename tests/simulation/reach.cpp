#include "tests/simulation/reach.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic::simulation {

void Reach::begin(Ms now_ms) {
  attached(now_ms);
  free_since_ms_ = now_ms;
}

void Reach::attached(Ms now_ms) {
  since_ms_ = now_ms;
  if (open_since_ms_) open_since_ms_ = now_ms;
  open_.clear();
  tries_.clear();
}

void Reach::tries(Ms now_ms) { tries_.push_back({now_ms, {}, false}); }

void Reach::has_failed(Ms now_ms) {
  if (!tries_.empty() && !tries_.back().failed_ms) tries_.back().failed_ms = now_ms;
}

void Reach::lease_is_over(Ms now_ms) {
  if (tries_.empty() || tries_.back().failed_ms) return;
  tries_.back().failed_ms = now_ms;
  tries_.back().cut_short = true;
}

void Reach::is_open(bool open, Ms now_ms) {
  if (open == open_since_ms_.has_value()) return;
  if (!open) open_.push_back({*open_since_ms_, now_ms});
  open_since_ms_ = open ? std::optional(now_ms) : std::nullopt;
}

void Reach::is_disturbed(Ms now_ms) {
  if (!open_since_ms_) return;
  is_open(false, now_ms);
  is_open(true, now_ms);
}

void Reach::is_free(bool free, Ms now_ms) {
  if (free != free_since_ms_.has_value()) free_since_ms_ = free ? std::optional(now_ms) : std::nullopt;
}

std::optional<std::string> Reach::chance(Ms from_ms, Ms now_ms, const Times& times) const {
  std::vector<Span> spans = open_;
  if (open_since_ms_) spans.push_back({*open_since_ms_, now_ms});
  for (const Span& span : spans) {
    const Span part{std::max(span.from_ms, from_ms), std::min(span.to_ms, now_ms)};
    if (part.from_ms >= part.to_ms) continue;
    if (auto found = chance_in(part, times)) return found;
  }
  return {};
}

std::optional<std::string> Reach::chance_in(const Span& span, const Times& times) const {
  // When the agent should begin an attempt at the latest: some time after the previous one has failed, or is given up.
  Ms due_ms = std::max(span.from_ms, free_since_ms_.value_or(span.to_ms)) + times.pause_ms;
  for (const auto& [try_ms, failed_ms, cut_short] : tries_) {
    // At the beginning of the span the attempt may have been made just before it.
    if (!cut_short && try_ms > span.from_ms && try_ms + times.attempt_ms <= span.to_ms) {
      return format("it tried at {} ms, and the way was open from {} to {} ms", try_ms, span.from_ms, span.to_ms);
    }
    if (try_ms > due_ms) break;
    due_ms = std::max(due_ms, failed_ms.value_or(try_ms + times.unanswered_ms) + times.pause_ms);
  }
  if (due_ms >= span.to_ms) return {};
  return format("the way was open from {} to {} ms, and it has not tried since {} ms", span.from_ms, span.to_ms,
                tries_.empty() ? since_ms_ : tries_.back().from_ms);
}

}  // namespace elastic::simulation
