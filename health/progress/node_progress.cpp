#include "health/progress/node_progress.h"

#include <algorithm>

#include "health/progress/limits.h"

namespace elastic::progress {

void NodeProgress::begin_round(int workers) {
  ranks_.clear();
  for (int i = 0; i <= workers; ++i) ranks_.emplace_back(pattern_);
  reported_beats_ = 0;
}

std::vector<NodeProgress::Speaker> NodeProgress::speakers(std::int64_t now_ms) const {
  std::vector<Speaker> out;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto progress = ranks_[i].at(now_ms);
    if (!progress) continue;
    const bool is_shared = i + 1 == ranks_.size();
    out.push_back({is_shared ? std::nullopt : std::optional(static_cast<int>(i)), *progress});
  }
  return out;
}

std::optional<NodeProgress::Summary> NodeProgress::summary(std::int64_t now_ms) const {
  const std::vector<Speaker> all = speakers(now_ms);
  if (all.empty()) return {};
  const auto by_age = [](const Speaker& speaker) { return speaker.progress.age_ms; };
  return Summary{.newest = *std::ranges::min_element(all, {}, by_age),
                 .oldest = *std::ranges::max_element(all, {}, by_age),
                 .speakers = static_cast<int>(all.size())};
}

std::optional<NodeProgress::Step> NodeProgress::last_step(std::int64_t now_ms) const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto& file = ranks_[i].metrics();
    if (file && file->written_ms) return Step{static_cast<int>(i), file->step, *file->written_ms};
  }
  constexpr int kByProgress = 1'000'000;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto progress = ranks_[i].at(now_ms);
    if (!progress || !progress->step) continue;
    const int source = static_cast<int>(i) + kByProgress * (1 + static_cast<int>(progress->source));
    return Step{source, *progress->step, now_ms - progress->age_ms};
  }
  return {};
}

std::uint64_t NodeProgress::beats() const {
  std::uint64_t sum = 0;
  for (const RankProgress& rank : ranks_) sum += rank.beats();
  return sum;
}

std::optional<std::int64_t> NodeProgress::report_due_ms() const {
  if (beats() == reported_beats_) return {};
  return reported_ms_ ? *reported_ms_ + limits::kProgressReportMs : 0;
}

void NodeProgress::reported(std::int64_t now_ms) {
  reported_beats_ = beats();
  reported_ms_ = now_ms;
}

}  // namespace elastic::progress
