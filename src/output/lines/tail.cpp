#include "src/output/lines/tail.h"

#include <algorithm>

#include "src/base/check.h"

namespace elastic::output {

Tail::Tail(std::size_t max_bytes) : max_bytes_(max_bytes) { ELASTIC_CHECK(max_bytes_ > 0); }

void Tail::add(std::string_view bytes) {
  if (bytes.size() >= max_bytes_) {
    cut(std::string_view(ring_).substr(start_));
    cut(std::string_view(ring_).substr(0, start_));
    cut(bytes.substr(0, bytes.size() - max_bytes_));
    ring_.assign(bytes.substr(bytes.size() - max_bytes_));
    start_ = 0;
    return;
  }
  const std::size_t room = max_bytes_ - ring_.size();
  if (const std::size_t taken = std::min(room, bytes.size()); taken > 0) {
    const std::size_t needed = ring_.size() + taken;
    // The capacity is doubled, as std::string would, but not beyond the bound.
    if (needed > ring_.capacity()) {
      ring_.reserve(std::min(max_bytes_, std::max(needed, 2 * ring_.capacity())));
    }
    ring_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
  }
  while (!bytes.empty()) {
    const std::size_t taken = std::min(max_bytes_ - start_, bytes.size());
    cut({ring_.data() + start_, taken});
    std::copy_n(bytes.data(), taken, ring_.data() + start_);
    start_ = (start_ + taken) % max_bytes_;
    bytes.remove_prefix(taken);
  }
}

// Counts the lines of bytes that are about to be overwritten; called with the oldest bytes first.
void Tail::cut(std::string_view bytes) {
  if (bytes.empty()) return;
  in_line_ = !bytes.ends_with('\n');
  // find() is memchr(), several times as fast as std::count() where lines are not short.
  for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos;) {
    ++lines_before_;
    bytes.remove_prefix(end + 1);
  }
}

TailText Tail::text() const {
  TailText text{ring_.substr(start_) + ring_.substr(0, start_), lines_before_};
  const std::size_t end = in_line_ ? text.bytes.find('\n') : std::string::npos;
  if (end != std::string::npos && end + 1 < text.bytes.size()) {
    text.bytes.erase(0, end + 1);
    ++text.lines_before;
  }
  return text;
}

}  // namespace elastic::output
