#include "src/output/lines/console_buffer.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::output {
namespace {

void operator+=(Dropped& sum, const Dropped& more) {
  sum.lines += more.lines;
  sum.bytes += more.bytes;
}

}  // namespace

std::string dropped_text(const Dropped& dropped, std::string_view why) {
  return format("{} ({} bytes) of worker output {} dropped: {}", counted(dropped.lines, "line"), dropped.bytes,
                dropped.lines == 1 ? "was" : "were", why);
}

ConsoleBuffer::ConsoleBuffer(Notice notice, std::size_t max_bytes, LineOf line_of)
    : notice_(notice), max_bytes_(max_bytes), line_of_(std::move(line_of)) {
  ELASTIC_CHECK(max_bytes_ > 0);
  if (!line_of_) line_of_ = [](std::string_view text) { return format("{}: warning: {}\n", program_name(), text); };
}

void ConsoleBuffer::add(int source, std::string_view lines) {
  if (lines.empty()) return;
  if (!dropping_ && !given_up_ && !at_line_start_ && source != last_source_) append("\n");
  add_raw(source, lines);
}

void ConsoleBuffer::add_raw(int source, std::string_view bytes) {
  if (bytes.empty()) return;
  std::size_t fits = 0;
  const std::size_t bound = max_bytes_ + rest_bytes_;
  if (!dropping_ && !given_up_ && size() < bound) {
    const std::size_t room = bound - size();
    fits = bytes.size() <= room ? bytes.size() : bytes.substr(0, room).rfind('\n') + 1;  // npos + 1 == 0
  }
  if (fits > 0) {
    append(bytes.substr(0, fits));
    last_source_ = source;
    cut_sources_.erase(source);
  }
  if (fits == bytes.size()) return;
  dropping_ = true;
  const Dropped lost = count(source, bytes.substr(fits));
  untold_ += lost;
  dropped_ += lost;
}

void ConsoleBuffer::expect_rest(std::size_t bytes) {
  rest_bytes_ = bytes;
  expects_rest_ = true;
}

// Leaves as much room behind the rest as there usually is when lines are accepted again.
void ConsoleBuffer::rest_has_come() {
  expects_rest_ = false;
  rest_bytes_ = size() - std::min(size(), max_bytes_ / 2);
  forget_rest();
}

// Frees the memory of a large rest.
void ConsoleBuffer::forget_rest() {
  if (expects_rest_ || size() > max_bytes_ / 2) return;
  rest_bytes_ = 0;
  if (waiting_.capacity() <= 2 * max_bytes_) return;
  waiting_.erase(0, std::exchange(taken_, 0));
  waiting_.shrink_to_fit();
}

void ConsoleBuffer::end_line() {
  if (!at_line_start_ && !dropping_ && !given_up_) append("\n");
}

void ConsoleBuffer::give_up(std::string_view unwritten) {
  given_up_ = true;
  // `unwritten` may end in the middle of a line, which continues in the waiting bytes.
  const std::string lost = std::string(unwritten).append(waiting_, taken_);
  if (!lost.empty()) dropped_ += count(last_source_, lost);
  waiting_ = {};
  taken_ = 0;
}

// Counts bytes that are dropped. A line that is dropped in pieces is counted with its first piece.
Dropped ConsoleBuffer::count(int source, std::string_view bytes) {
  auto lines = static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
  if (cut_sources_.erase(source) > 0) --lines;
  if (!bytes.ends_with('\n')) {
    ++lines;
    cut_sources_.insert(source);
  }
  return {lines, bytes.size()};
}

void ConsoleBuffer::append(std::string_view bytes) {
  // The taken bytes are erased once they are more than the bytes that have to move, so that no byte moves often, and
  // the string holds at most twice the bound.
  if (taken_ > size()) waiting_.erase(0, std::exchange(taken_, 0));
  waiting_.append(bytes);
  at_line_start_ = bytes.ends_with('\n');
}

bool ConsoleBuffer::take_bytes(std::string& bytes, std::size_t max_bytes) {
  bytes.clear();
  resume();
  if (taken_ == 0 && waiting_.size() <= max_bytes) {
    bytes.swap(waiting_);
  } else {
    const std::size_t count_taken = std::min(max_bytes, size());
    bytes.append(waiting_, taken_, count_taken);
    taken_ += count_taken;
    if (empty()) waiting_.erase(0, std::exchange(taken_, 0));
  }
  forget_rest();
  resume();
  return !bytes.empty();
}

// Accepts lines again, behind the message about those that are missing, once there is room for many.
void ConsoleBuffer::resume() {
  if (!dropping_ || given_up_ || size() > max_bytes_ / 2) return;
  dropping_ = false;
  cut_sources_.clear();
  const Dropped lost = std::exchange(untold_, {});
  if (!at_line_start_) append("\n");
  if (notice_ == Notice::kInPlace) append(line_of_(dropped_text(lost)));
}

}  // namespace elastic::output
