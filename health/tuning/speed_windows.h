#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

}  // namespace elastic::tuning
