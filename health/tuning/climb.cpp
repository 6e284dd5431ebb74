#include "health/tuning/climb.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/base/text.h"

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

void Climb::begin(std::int64_t start, std::int64_t kept, std::int64_t limit) {
  *this = Climb();
  has_begun_ = true;
  start_ = start;
  value_ = kept;
  if (kept > start) before_.push_back({start, 0});
  limit_ = limit;
  plan_double();
}

void Climb::bound(std::int64_t limit) {
  limit_ = limit;
  if (next_ > limit_) plan_double();
}

void Climb::plan(std::int64_t value) {
  if (tries_ >= kMostTries) return end(format("{} is the most", counted(kMostTries, "change")));
  next_ = value;
}

void Climb::plan_double() {
  const std::int64_t doubled = std::min(std::max<std::int64_t>(value_ * 2, 1), limit_);
  if (doubled <= value_) return end(format("{} is the bound", limit_));
  plan(doubled);
}

void Climb::plan_between(std::int64_t tried, const Speed& after) {
  const bool is_below = !before_.empty() && before_.back().speed > after.median;
  const std::int64_t other = is_below ? before_.back().value : tried;
  const std::int64_t middle = std::midpoint(std::min(value_, other), std::max(value_, other));
  if (middle == value_ || middle == other) return end(format("{} was slower", tried));
  is_between_ = true;
  plan(middle);
}

bool Climb::judge(const Speed& before, const Speed& after) {
  const std::int64_t tried = *std::exchange(next_, {});
  ++tries_;
  const double least = std::max(before.median * kLeastGain, kNoiseTimes * std::max(before.noise, after.noise));
  if (after.median > before.median + least) {
    before_.push_back({value_, before.median});
    value_ = tried;
    is_between_ ? end("it is the best of its neighbours") : plan_double();
    return true;
  }
  const bool has_fallen = after.median < before.median - least;
  if (is_between_ || !has_fallen) {
    end(format("{} was {}", tried, has_fallen ? "slower" : "no faster"));
  } else {
    plan_between(tried, after);
  }
  return false;
}

void Climb::end(std::string why) {
  next_.reset();
  if (why_over_.empty()) why_over_ = std::move(why);
}

bool Climb::retreat(std::string why) {
  end(std::move(why));
  const std::int64_t too_large = value_;
  while (value_ >= too_large && !before_.empty()) {
    value_ = before_.back().value;
    before_.pop_back();
  }
  return value_ < too_large;
}

}  // namespace elastic::tuning
