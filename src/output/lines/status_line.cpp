#include "src/output/lines/status_line.h"

#include <algorithm>
#include <utility>

#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::output {
namespace {

constexpr std::int64_t kShowMs = 1000;
constexpr std::int64_t kShowByUserMs = 250;
constexpr std::size_t kLeastColumns = 20;
constexpr std::int64_t kFirstLineMs = 10'000;
constexpr std::int64_t kFirstLineForOthersMs = 3'000;
constexpr std::int64_t kLineMs = 30'000;
constexpr std::int64_t kSameWaitMs = 1'000;  // two waits that began less far apart are one

constexpr std::string_view kEraseToEnd = "\x1b[K";

std::string left_text(const Waiting& waiting, std::int64_t now_ms) {
  // Rounded up, so that at "1 s" the wait is not over yet.
  return duration_text(std::max<std::int64_t>(*waiting.until_ms - now_ms + 999, 0));
}

// "; 12 s ago node 1 was lost: its connection was reset", or nothing.
std::string why_text(const Waiting& waiting, std::int64_t now_ms) {
  if (waiting.because.empty()) return {};
  return format("; {} ago {}", duration_text(std::max<std::int64_t>(now_ms - waiting.because_ms, 0)), waiting.because);
}

// Replaces all that is not printable ASCII, so that each character takes one column.
std::string ascii(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F)
      out += c;
    else if ((byte & 0xC0) != 0x80)
      out += '?';
  }
  return out;
}

void shorten(std::string& text, std::size_t room) {
  if (text.size() <= room) return;
  text.resize(room > 3 ? room - 3 : 0);
  text += std::string(std::min<std::size_t>(room, 3), '.');
}

}  // namespace

std::string duration_text(std::int64_t milliseconds) {
  const std::int64_t seconds = milliseconds / 1000;
  if (seconds < 60) return format("{} s", seconds);
  if (seconds < 3600) return format("{} m {} s", seconds / 60, seconds % 60);
  return format("{} h {} m", seconds / 3600, seconds / 60 % 60);
}

std::string status_text(const Waiting& waiting, std::int64_t now_ms, std::size_t columns) {
  // After the last column a terminal would begin the next line.
  const std::size_t room = std::max<std::size_t>(columns, 1) - 1;
  std::string time;
  if (!waiting.until_ms) {
    time = format(", {}", duration_text(now_ms - waiting.since_ms));
  } else if (waiting.at_end.empty()) {
    time = format(", {} of {}", duration_text(now_ms - waiting.since_ms),
                  duration_text(*waiting.until_ms - waiting.since_ms));
  } else {
    time = format(", {} in {}", ascii(waiting.at_end), left_text(waiting, now_ms));
  }
  std::string what = ascii(waiting.what + why_text(waiting, now_ms));
  const std::string name = format("{}: ", program_name());
  const std::size_t around = name.size() + time.size();
  shorten(what, room > around ? room - around : 0);
  std::string text = name + what + time;
  shorten(text, room);
  const std::string hint = waiting.hint.empty() ? "" : "; " + ascii(waiting.hint);
  return text.size() + hint.size() <= room ? text + hint : text;
}

std::string waiting_text(const Waiting& waiting, std::int64_t now_ms) {
  const std::string why = why_text(waiting, now_ms);
  std::string text = format("{}, for {}", waiting.what, duration_text(now_ms - waiting.since_ms));
  if (!waiting.until_ms) return text + why;
  if (waiting.at_end.empty()) {
    return text + format(" of {}", duration_text(*waiting.until_ms - waiting.since_ms)) + why;
  }
  return text + format(", {} in {}", waiting.at_end, left_text(waiting, now_ms)) + why;
}

std::string StatusLine::draw(std::int64_t now_ms, std::size_t columns) {
  const bool wanted = waiting_ && columns >= kLeastColumns &&
                      now_ms - waiting_->since_ms >= (waiting_->by_user ? kShowByUserMs : kShowMs);
  if (!wanted) return erase();
  std::string text = status_text(*waiting_, now_ms, columns);
  if (text == drawn_) return {};
  drawn_ = std::move(text);
  return format("\r{}{}", drawn_, kEraseToEnd);
}

std::string StatusLine::erase() {
  if (drawn_.empty()) return {};
  drawn_.clear();
  return format("\r{}", kEraseToEnd);
}

bool WaitLog::due(const Waiting& waiting, std::int64_t now_ms) {
  // The clock of an agent, by which waits begin, is not quite the one of the screen.
  const bool is_same =
      since_ms_ && std::max(*since_ms_, waiting.since_ms) - std::min(*since_ms_, waiting.since_ms) < kSameWaitMs;
  if (!is_same) {
    since_ms_ = waiting.since_ms;
    next_ms_.reset();
  }
  const std::int64_t first_ms = waiting.since_ms + (waiting.for_others ? kFirstLineForOthersMs : kFirstLineMs);
  if (now_ms < next_ms_.value_or(first_ms)) return false;
  next_ms_ = now_ms + kLineMs;
  return true;
}

bool WaitLog::advice_due(const Waiting& waiting, std::int64_t now_ms) {
  const std::int64_t after_ms = waiting.advice_at_once ? kShowMs : kFirstLineForOthersMs;
  if (waiting.advice.empty() || waiting.advice == advised_ || now_ms - waiting.since_ms < after_ms) return false;
  advised_ = waiting.advice;
  return true;
}

}  // namespace elastic::output
