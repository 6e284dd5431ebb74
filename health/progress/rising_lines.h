#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace elastic::progress {

// Finds lines that recur with a rising number, whatever program prints them: two lines are the same where they differ
// in their numbers alone. Numbers of dates, times and fractions do not count, nor do those with a unit of time behind
// them, nor any in a line that speaks of waiting, of another try or of an error.
class RisingLines {
 public:
  // Takes one line. Returns its number at the third rise in a row, and at each one after that.
  std::optional<std::int64_t> note_line(std::string_view line);

 private:
  static constexpr std::size_t kNumbers = 4;  // so many numbers of a line are looked at, from the left
  // | kinds of lines of one rank that are remembered for progress | {kKinds} | the one that was seen the longest time
  // ago is forgotten |
  static constexpr std::size_t kKinds = 16;  // so many kinds of lines are remembered
  static constexpr int kRises = 3;
  static constexpr int kMostRises = 1000;  // more count as so many

  struct Kind {
    std::uint64_t hash = 0;  // of the line without its numbers; 0: free
    std::uint64_t used = 0;  // when it was seen last
    bool counts = true;
    std::size_t size = 0;
    std::array<std::int64_t, kNumbers> last = {};
    std::array<int, kNumbers> rises = {};  // in a row
  };
  struct Line {
    std::uint64_t hash = 0;
    std::size_t size = 0;
    std::array<std::int64_t, kNumbers> numbers = {};
  };

  static Line read(std::string_view line);
  Kind& kind_of(const Line& line, std::string_view text);

  std::array<Kind, kKinds> kinds_;
  std::uint64_t clock_ = 0;
};

}  // namespace elastic::progress
