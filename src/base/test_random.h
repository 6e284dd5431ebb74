#pragma once

#include <cstdint>
#include <limits>

namespace elastic {

// Pseudo-random numbers for tests, the same on every machine (splitmix64). std::ranges::shuffle can use it.
class TestRandom {
 public:
  using result_type = std::uint64_t;
  explicit TestRandom(std::uint64_t seed) : state_(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace elastic
