#include "health/progress/line_cutter.h"

#include <algorithm>

#include "health/progress/limits.h"

namespace elastic::progress {

std::string_view LineCutter::last_lines(std::string_view bytes) {
  std::size_t begin = bytes.size();
  for (std::size_t lines = 0; begin > 0; --begin) {
    const char c = bytes[begin - 1];
    if ((c == '\n' || c == '\r') && lines++ == limits::kProgressLines) break;
  }
  return bytes.substr(begin);
}

void LineCutter::keep(std::string_view text) {
  if (is_skipping_ || line_.size() >= limits::kProgressLineBytes) return;
  if (escape_ == Escape::kNone && text.find('\x1b') == std::string_view::npos) {
    line_.append(text.substr(0, limits::kProgressLineBytes - line_.size()));
    return;
  }
  for (const char c : text) {
    if (line_.size() >= limits::kProgressLineBytes) return;
    switch (escape_) {
      case Escape::kNone:
        if (c == '\x1b') {
          escape_ = Escape::kEscape;
        } else {
          line_ += c;
        }
        break;
      case Escape::kEscape: escape_ = c == '[' ? Escape::kSequence : Escape::kNone; break;
      case Escape::kSequence:
        if (c >= '@' && c <= '~') escape_ = Escape::kNone;
        break;
    }
  }
}

}  // namespace elastic::progress
