#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastic::tuning {

// How many windows one speed is made of; its median forgives two that an evaluation or a checkpoint has made long.
inline constexpr std::size_t kWindows = 5;
// Windows that do not count after a change: batches that were loaded ahead, and loaders that start.
inline constexpr std::size_t kSettlingWindows = 1;
// What a window lasts, at least.
inline constexpr std::int64_t kWindowMs = 2000;
inline constexpr std::int64_t kWindowSteps = 5;

// The last step of training that was seen, and when it was made. `source`: steps of another one have another count.
struct StepSeen {
  int source = 0;
  std::int64_t step = 0;
  std::int64_t at_ms = 0;
  bool operator==(const StepSeen&) const = default;
};

// In steps a second, or in samples a second.
struct Speed {
  double median = 0;
  double noise = 0;  // of one window: the median of the distances to the median, as a standard deviation
  Speed times(double factor) const { return {median * factor, noise * factor}; }
};

// Measures steps a second at one setting.
class SpeedWindows {
 public:
  // The setting is another one from now on: steps before the next one do not count.
  void begin();
  // The same step may be told many times.
  void add(const StepSeen& seen);
  // Nothing until there are enough windows.
  std::optional<Speed> speed() const;
  bool has_steps() const { return last_.has_value(); }
  // How many windows there were, whatever they counted for.
  int windows() const { return count_; }
  // Nothing that was seen counts any more, as new workers count their steps anew.
  void clear();

 private:
  std::optional<StepSeen> last_;
  std::optional<StepSeen> begin_;  // of the window
  std::size_t settling_ = kSettlingWindows;
  std::vector<double> speeds_;  // the last kWindows
  int count_ = 0;
};

// | changes of one value of a data loader that are tried | {kMostTries} | the search is over
// ([auto-tunning.md](auto-tunning.md#bounds)) |
inline constexpr int kMostTries = 5;
// A speed has risen, or fallen, if it differs by more than this many times its noise, and by more than this part.
inline constexpr double kNoiseTimes = 2;
inline constexpr double kLeastGain = 0.03;

// Looks for the best of one value: doubles it while that makes the job faster. Where a doubling has made it slower, one
// value between is tried, on the side of the faster neighbour. Never goes below the value that it began with.
class Climb {
 public:
  // `start` is in use. Nothing above `limit` is tried.
  void begin(std::int64_t start, std::int64_t limit) { begin(start, start, limit); }
  // The same, but `kept` has been found by another search that began with `start`.
  void begin(std::int64_t start, std::int64_t kept, std::int64_t limit);
  // The limit is this from now on; what is kept already stays.
  void bound(std::int64_t limit);
  bool has_begun() const { return has_begun_; }
  std::int64_t start() const { return start_; }
  // The best so far.
  std::int64_t value() const { return value_; }
  // What is to be tried; nothing: the search is over.
  std::optional<std::int64_t> next() const { return next_; }

  // The value of next() was in use, with this speed; `before`: that of value(). Returns whether it is kept.
  bool judge(const Speed& before, const Speed& after);
  // There is to be no further try. `why`: a clause for people.
  void end(std::string why);
  // The value in use is too large: the next smaller one that was kept before it holds. False: there is none.
  bool retreat(std::string why);
  // Why it is over; empty before that.
  const std::string& why_over() const { return why_over_; }

 private:
  struct Point {
    std::int64_t value = 0;
    double speed = 0;
  };
  void plan_double();
  void plan_between(std::int64_t tried, const Speed& after);
  void plan(std::int64_t value);

  bool has_begun_ = false;
  std::int64_t start_ = 0;
  std::int64_t limit_ = 0;
  std::int64_t value_ = 0;
  std::vector<Point> before_;  // the values that value_ has replaced, one after the other
  std::optional<std::int64_t> next_;
  bool is_between_ = false;  // next_ is
  int tries_ = 0;
  std::string why_over_;
};

}  // namespace elastic::tuning
