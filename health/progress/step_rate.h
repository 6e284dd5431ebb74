#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace elastic::progress {

// Steps a second, over the last steps of one rank.
class StepRate {
 public:
  void clear() { size_ = 0; }
  void add(std::int64_t step, std::int64_t now_ms);

  // In thousandths. Where the next step is late it is the less the longer that is so. Nothing before the second step.
  std::optional<std::int64_t> millisteps_per_second(std::int64_t now_ms) const;

 private:
  static constexpr std::size_t kSamples = 16;
  // Steps that come faster are counted together, so that the window is at least half a minute.
  static constexpr std::int64_t kApartMs = 2000;

  struct Sample {
    std::int64_t step = 0;
    std::int64_t at_ms = 0;
  };
  const Sample& back(std::size_t ago) const { return samples_[(next_ + kSamples - 1 - ago) % kSamples]; }

  std::array<Sample, kSamples> samples_;
  std::size_t next_ = 0;
  std::size_t size_ = 0;
  Sample last_;
  std::int64_t longest_gap_ms_ = 0;  // between two steps since clear()
};

}  // namespace elastic::progress
