#pragma once

#include <cstdint>

namespace elastic::simulation {

// Random numbers from a seed (splitmix64). They are the same in every build, which those of the standard library's
// distributions are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // One of several independent streams of random numbers for the same seed.
  Random(std::uint64_t seed, std::uint64_t stream)
      : state_(seed * 0x9E3779B97F4A7C15ULL ^ stream * 0xD1B54A32D192ED03ULL) {
    (void)next();
  }

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // A number from `from` to `to`, both included.
  std::int64_t range(std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(to - from + 1));
  }
  int number(int from, int to) { return static_cast<int>(range(from, to)); }
  bool chance(int percent) { return range(1, 100) <= percent; }

 private:
  std::uint64_t state_;
};

}  // namespace elastic::simulation
