#include "health/tuning/speed_windows.h"

#include <algorithm>
#include <cmath>

namespace elastic::tuning {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void SpeedWindows::begin() {
  begin_.reset();
  settling_ = kSettlingWindows;
  speeds_.clear();
}

void SpeedWindows::clear() {
  last_.reset();
  begin();
}

void SpeedWindows::add(const StepSeen& seen) {
  if (last_ == seen) return;
  if (last_ && last_->source != seen.source) begin();
  const bool is_back = last_ && (seen.step < last_->step || seen.at_ms < last_->at_ms);
  last_ = seen;
  if (!begin_ || is_back) {
    begin_ = seen;
    return;
  }
  const std::int64_t steps = seen.step - begin_->step;
  const std::int64_t milliseconds = seen.at_ms - begin_->at_ms;
  if (steps < kWindowSteps || milliseconds < kWindowMs) return;
  begin_ = seen;
  ++count_;
  if (settling_ > 0) {
    --settling_;
    return;
  }
  if (speeds_.size() == kWindows) speeds_.erase(speeds_.begin());
  speeds_.push_back(static_cast<double>(steps) * 1000 / static_cast<double>(milliseconds));
}

std::optional<Speed> SpeedWindows::speed() const {
  if (speeds_.size() < kWindows) return {};
  const double median = median_of(speeds_);
  std::vector<double> distances;
  for (const double each : speeds_) distances.push_back(std::abs(each - median));
  constexpr double kDeviations = 1.4826;  // of a normal distribution, in its median distance
  return Speed{.median = median, .noise = kDeviations * median_of(std::move(distances))};
}

}  // namespace elastic::tuning
