#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/limits.h"

namespace elastic::output {

// Where a log file ends that may have `max_bytes` (--log-max-bytes), and the next one begins: between two
// lines. Only a line of which more than `max_carry_bytes` stand in the file already, or that is longer than
// a whole file, is cut. No file ever has more than `max_bytes`.
class Rotation {
 public:
  // `max_bytes` 0: no bound. What is written begins at the beginning of an empty file.
  explicit Rotation(std::uint64_t max_bytes = 0, std::size_t max_carry_bytes = limits::kLogLineBytes);

  // What is to be done about the beginning of what comes next.
  struct Step {
    std::size_t write = 0;  // so many bytes go to the file
    bool rotate = false;    // then the file is full, and a new one begins
    // The last bytes of the full file, the beginning of a line: they move to the new one.
    std::string carry = {};
  };
  // `bytes` is not empty. The next call has what this step does not write.
  Step next(std::string_view bytes);

 private:
  Step full(std::size_t write, std::string carry);
  void wrote(std::string_view bytes);

  std::uint64_t max_bytes_;
  std::size_t max_carry_bytes_;
  std::uint64_t size_ = 0;        // of the file
  std::uint64_t line_bytes_ = 0;  // of its last line, if that has not ended
  std::string line_;              // that line, unless it is longer than what may move
};

}  // namespace elastic::output
