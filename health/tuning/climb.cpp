#include "health/tuning/climb.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/base/text.h"

namespace elastic::tuning {

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
