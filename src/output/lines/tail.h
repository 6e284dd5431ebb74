#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/limits.h"

namespace elastic::output {

// The end of a stream.
struct TailText {
  // The last bytes, in order. Where more bytes came before them, this begins with the first complete line, if there
  // is one.
  std::string bytes;
  std::uint64_t lines_before = 0;  // lines that came before and are not in `bytes`
};

// Keeps the last bytes of a stream in at most `max_bytes` of memory, of which none is allocated before the first
// byte is added. Adding costs as much as copying the bytes and counting their lines.
class Tail {
 public:
  explicit Tail(std::size_t max_bytes = limits::kStderrTailBytes);  // >= 1

  void add(std::string_view bytes);
  bool empty() const { return ring_.empty(); }
  TailText text() const;

 private:
  void cut(std::string_view bytes);

  std::size_t max_bytes_;
  std::string ring_;                // grows to max_bytes_, then is overwritten from the beginning
  std::size_t start_ = 0;           // where the oldest byte is, once the ring is full
  std::uint64_t lines_before_ = 0;  // line ends that were overwritten
  bool in_line_ = false;            // the oldest byte is in the middle of a line
};

}  // namespace elastic::output
