#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "health/progress/limits.h"

namespace elastic::progress {

// Cuts what a worker writes into lines, at a bounded cost: of each line only the beginning is kept, and where a worker
// writes more lines than can matter, the rest is passed over until the next tenth of a second. A line ends at '\n' or
// '\r', so that each state of a progress bar is a line. Colours and other CSI sequences are left out.
class LineCutter {
 public:
  // Calls each(std::string_view line) for the lines that the bytes complete.
  template <class Each>
  void push(std::string_view bytes, std::int64_t now_ms, const Each& each) {
    if (now_ms - window_begin_ms_ >= kWindowMs) {
      window_begin_ms_ = now_ms;
      lines_left_ = static_cast<int>(limits::kProgressLines);
    }
    if (lines_left_ == 0) return skip_line();
    // The end says how far the worker is.
    if (bytes.size() > limits::kProgressReadBytes) {
      bytes.remove_prefix(bytes.size() - limits::kProgressReadBytes);
      skip_line();
    }
    while (!bytes.empty()) {
      const std::size_t end = bytes.find_first_of("\n\r");
      keep(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      if (!is_skipping_ && !line_.empty()) {
        each(std::string_view(line_));
        if (--lines_left_ == 0) return skip_line();
      }
      line_.clear();
      is_skipping_ = false;
      escape_ = Escape::kNone;
    }
  }

  // The same for what was written since a look that may be long ago: of more lines than are read in a tenth of a second
  // the last ones count. `follows_gap`: other bytes, that are not known, come before these.
  template <class Each>
  void push_end(std::string_view bytes, bool follows_gap, std::int64_t now_ms, const Each& each) {
    const std::string_view end = last_lines(bytes);
    if (end.size() < bytes.size()) {
      line_.clear();
      is_skipping_ = false;
      escape_ = Escape::kNone;
    } else if (follows_gap) {
      skip_line();
    }
    push(end, now_ms, each);
  }

 private:
  static constexpr std::int64_t kWindowMs = 100;
  enum class Escape : unsigned char { kNone, kEscape, kSequence };

  // What comes up to the end of this line is passed over.
  void skip_line() {
    line_.clear();
    is_skipping_ = true;
    escape_ = Escape::kNone;
  }
  void keep(std::string_view text);
  // All of it, or from where a line begins.
  static std::string_view last_lines(std::string_view bytes);

  std::string line_;
  bool is_skipping_ = false;
  Escape escape_ = Escape::kNone;
  std::int64_t window_begin_ms_ = 0;
  int lines_left_ = static_cast<int>(limits::kProgressLines);
};

}  // namespace elastic::progress
