#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "health/timers/limits.h"

namespace elastic::timers {

// Cuts what comes out of the FIFO of file timers into lines. A line that is longer than any client writes is passed
// over, up to its end.
class TimerLines {
 public:
  // Calls each(std::string_view line) for the lines that the bytes complete.
  template <class Each>
  void push(std::string_view bytes, const Each& each) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      keep(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      if (!is_skipping_) each(std::string_view(line_));
      clear();
    }
  }

  // Forgets a line that has no end yet.
  void clear() {
    line_.clear();
    is_skipping_ = false;
  }

 private:
  void keep(std::string_view text) {
    is_skipping_ = is_skipping_ || line_.size() + text.size() > limits::kFileTimerLineBytes;
    if (is_skipping_) {
      line_.clear();
    } else {
      line_.append(text);
    }
  }

  std::string line_;
  bool is_skipping_ = false;
};

}  // namespace elastic::timers
