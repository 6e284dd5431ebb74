#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/limits.h"

namespace elastic::output {

// The end of a stream.
struct TailText {
  // The last bytes, in order. Where more came before them they begin with the first line of which
  // nothing is missing, if there is one.
  std::string bytes;
  std::uint64_t lines_before = 0;  // lines of which `bytes` has nothing
};

// Keeps the last bytes of a stream in at most `max_bytes` of memory; none is taken before the first
// byte comes. Adding costs as much as copying what is added and counting its lines.
class Tail {
 public:
  explicit Tail(std::size_t max_bytes = limits::kStderrTailBytes);  // >= 1

  void add(std::string_view bytes);
  bool empty() const { return ring_.empty(); }
  TailText text() const;

 private:
  void cut(std::string_view bytes);

  std::size_t max_bytes_;
  std::string ring_;                // grows to max_bytes_, then is written over in turn
  std::size_t start_ = 0;           // of a full ring: where the oldest byte is
  std::uint64_t lines_before_ = 0;  // line ends that were cut off
  bool in_line_ = false;            // the oldest byte is in the middle of a line
};

}  // namespace elastic::output
