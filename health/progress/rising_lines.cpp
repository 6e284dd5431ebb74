#include "health/progress/rising_lines.h"

#include <algorithm>
#include <string>

#include "health/progress/scan.h"
#include "src/base/text.h"

namespace elastic::progress {
namespace {

// Numbers of more digits are times in seconds or nanoseconds, or addresses.
constexpr std::size_t kMostDigits = 9;

constexpr std::array<std::string_view, 14> kWordsOfNoProgress = {
    "warn",  "retry",   "retries",   "retrying", "attempt", "timeout", "timed out",
    "error", "waiting", "heartbeat", "elapsed",  "uptime",  "failed",  "still "};

constexpr std::array<std::string_view, 9> kTimeUnits = {"s",  "sec", "secs",    "second", "seconds",
                                                        "ms", "min", "minutes", "hours"};

// Whether the digits from `begin` to `end` may be a step.
bool may_be_step(std::string_view line, std::size_t begin, std::size_t end) {
  if (end - begin > kMostDigits) return false;
  const auto is_of_group = [](char c) { return c == '-' || c == ':' || c == '.' || c == ','; };
  if (begin > 0) {
    const char before = line[begin - 1];
    if (is_letter(before)) return false;
    if (is_of_group(before) && begin > 1 && is_digit(line[begin - 2])) return false;
  }
  if (end >= line.size()) return true;
  const char after = line[end];
  if (is_letter(after) || after == '%') return false;
  if (is_of_group(after) && end + 1 < line.size() && is_digit(line[end + 1])) return false;
  if (after != ' ') return true;
  std::size_t unit_end = end + 1;
  while (unit_end < line.size() && is_letter(line[unit_end])) ++unit_end;
  const std::string_view unit = line.substr(end + 1, unit_end - end - 1);
  return std::ranges::find(kTimeUnits, unit) == kTimeUnits.end();
}

bool speaks_of_progress(std::string_view line) {
  const std::string words = lower(line);
  return std::ranges::none_of(kWordsOfNoProgress,
                              [&](std::string_view word) { return words.find(word) != std::string::npos; });
}

}  // namespace

RisingLines::Line RisingLines::read(std::string_view line) {
  Line out{.hash = kHashBegin};
  for (std::size_t at = 0; at < line.size();) {
    if (!is_digit(line[at])) {
      out.hash = hash_with(out.hash, line[at++]);
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && is_digit(line[at])) ++at;
    out.hash = hash_with(out.hash, '#');
    if (out.size == kNumbers || !may_be_step(line, begin, at)) continue;
    out.numbers[out.size++] = Scanner(line, begin).integer().value_or(0);
  }
  return out;
}

// The kind of a line; a new one takes the place of the one that was seen the longest time ago.
RisingLines::Kind& RisingLines::kind_of(const Line& line, std::string_view text) {
  const auto found = std::ranges::find_if(
      kinds_, [&](const Kind& kind) { return kind.hash == line.hash && kind.size == line.size && kind.used != 0; });
  if (found != kinds_.end()) return *found;
  Kind& oldest = *std::ranges::min_element(kinds_, {}, &Kind::used);
  oldest = {.hash = line.hash, .counts = speaks_of_progress(text), .size = line.size, .last = line.numbers};
  return oldest;
}

std::optional<std::int64_t> RisingLines::note_line(std::string_view text) {
  const Line line = read(text);
  if (line.size == 0) return {};
  Kind& kind = kind_of(line, text);
  kind.used = ++clock_;
  if (!kind.counts) return {};
  bool turned = false;  // a number further left has risen: an epoch, and what is right of it begins again
  std::array<bool, kNumbers> has_risen = {};
  for (std::size_t i = 0; i < line.size; ++i) {
    const bool rises = line.numbers[i] > kind.last[i];
    const bool falls = line.numbers[i] < kind.last[i];
    has_risen[i] = rises || (falls && turned);
    if (rises) kind.rises[i] = std::min(kind.rises[i] + 1, kMostRises);
    if (falls && !turned) kind.rises[i] = 0;
    turned = turned || rises;
    kind.last[i] = line.numbers[i];
  }
  const auto best = static_cast<std::size_t>(std::ranges::max_element(kind.rises) - kind.rises.begin());
  if (kind.rises[best] < kRises || !has_risen[best]) return {};
  return line.numbers[best];
}

}  // namespace elastic::progress
