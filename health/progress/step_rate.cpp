#include "health/progress/step_rate.h"

#include <algorithm>

namespace elastic::progress {

void StepRate::add(std::int64_t step, std::int64_t now_ms) {
  const Sample sample{step, now_ms};
  if (size_ > 0 && step < last_.step) clear();
  if (size_ == 0) {
    longest_gap_ms_ = 0;
  } else {
    longest_gap_ms_ = std::max(longest_gap_ms_, now_ms - last_.at_ms);
  }
  last_ = sample;
  if (size_ > 0 && now_ms - back(0).at_ms < kApartMs) return;
  samples_[next_] = sample;
  next_ = (next_ + 1) % kSamples;
  size_ = std::min(size_ + 1, kSamples);
}

std::optional<std::int64_t> StepRate::millisteps_per_second(std::int64_t now_ms) const {
  if (size_ == 0) return {};
  const Sample& first = back(size_ - 1);
  if (last_.at_ms <= first.at_ms) return {};
  const std::int64_t until_ms = std::max(last_.at_ms, now_ms - longest_gap_ms_);
  const double steps = static_cast<double>(last_.step - first.step);
  const double rate = steps * 1'000'000 / static_cast<double>(until_ms - first.at_ms);
  return static_cast<std::int64_t>(std::min(rate, 1e15));
}

}  // namespace elastic::progress
