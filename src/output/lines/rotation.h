#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/output/limits.h"

namespace elastic::output {

// Decides where a log file of at most `max_bytes` (--log-max-bytes) ends and the next one begins: between two
// lines. A line is cut only if more than `max_carry_bytes` of it are in the file already, or if it is longer than
// a whole file. No file ever has more than `max_bytes`.
class Rotation {
 public:
  // `max_bytes` 0: no bound. The first file is empty.
  explicit Rotation(std::uint64_t max_bytes = 0, std::size_t max_carry_bytes = limits::kLogLineBytes);

  // What is to be done with the beginning of the next bytes.
  struct Step {
    std::size_t write = 0;  // so many bytes are written to the file
    bool rotate = false;    // afterwards the file is full, and a new one begins
    // The last bytes of the full file, the beginning of a line, which move to the new one.
    std::string carry = {};
  };
  // `bytes` is not empty. The next call gets the bytes that this step does not write.
  Step next(std::string_view bytes);

 private:
  Step full(std::size_t write, std::string carry);
  void wrote(std::string_view bytes);

  std::uint64_t max_bytes_;
  std::size_t max_carry_bytes_;
  std::uint64_t size_ = 0;        // the file's size
  std::uint64_t line_bytes_ = 0;  // the size of its last line, if that is incomplete
  std::string line_;              // that line, unless it is longer than max_carry_bytes_
};

}  // namespace elastic::output
