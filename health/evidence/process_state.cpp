#include "health/evidence/process_state.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::string_view kStates = "RSDTtZXxKWPI";

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// The word at the front, which is taken away.
std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

// What stands behind a label at the beginning of a line.
std::string_view line_after(std::string_view text, std::string_view label) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(label)) return trim(line.substr(label.size()));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

char known_state(std::string_view word) {
  return word.size() == 1 && kStates.find(word[0]) != std::string_view::npos ? word[0] : '\0';
}

// "4711 (comm) S 1 ...", where comm may contain blanks and parentheses. The state is the third field of proc(5).
void read_stat(std::string_view text, ProcessSample& sample) {
  const std::size_t close = text.rfind(')');
  if (close == std::string_view::npos) return;
  text.remove_prefix(close + 1);
  sample.state = known_state(take_word(text));
  std::optional<std::uint64_t> user;
  std::optional<std::uint64_t> system;
  for (int field = 4; field <= 22; ++field) {
    const std::string_view word = take_word(text);
    if (field == 14) user = number_of<std::uint64_t>(word);
    if (field == 15) system = number_of<std::uint64_t>(word);
    if (field == 22) sample.started_ticks = number_of<std::uint64_t>(word).value_or(0);
  }
  if (user && system) sample.cpu_ticks = *user + *system;
}

void read_status(std::string_view text, ProcessSample& sample) {
  std::string_view state = line_after(text, "State:");
  if (sample.state == 0) sample.state = known_state(take_word(state));
  // "NSpid:	4711	17": the innermost namespace last.
  std::string_view pids = line_after(text, "NSpid:");
  for (std::string_view word = take_word(pids); !word.empty(); word = take_word(pids)) {
    if (const auto pid = number_of<int>(word)) sample.own_pid = *pid;
  }
}

// "202 0x7f... ... 0x7ffd 0x7f01", "-1 0x7ffd 0x7f01" outside of any system call, "running".
std::optional<std::int64_t> syscall_in(std::string_view text) {
  const auto number = number_of<std::int64_t>(take_word(text));
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<std::uint64_t> bytes_in(std::string_view text) {
  const auto sum_of = [&](std::string_view one, std::string_view other) -> std::optional<std::uint64_t> {
    const auto first = number_of<std::uint64_t>(line_after(text, one));
    const auto second = number_of<std::uint64_t>(line_after(text, other));
    return first && second ? std::optional(*first + *second) : std::nullopt;
  };
  const auto by_calls = sum_of("rchar:", "wchar:");
  const auto of_disks = sum_of("read_bytes:", "write_bytes:");  // pages of mapped files are in these alone
  return std::max(by_calls, of_disks);
}

bool is_same(const ProcessSample& first, const ProcessSample& second) {
  return first.state != 0 && second.state != 0 && first.started_ticks == second.started_ticks;
}

std::optional<std::uint64_t> risen(std::optional<std::uint64_t> from, std::optional<std::uint64_t> to) {
  if (!from || !to) return {};
  return *to > *from ? *to - *from : 0;
}

bool has_ended(char state) { return state == 0 || state == 'Z' || state == 'X' || state == 'x'; }
bool is_stopped(char state) { return state == 'T' || state == 't'; }

}  // namespace

ProcessSample read_process(const ProcessTexts& texts) {
  const auto bounded = [](std::string_view text) { return text.substr(0, kProcFileBytes); };
  ProcessSample sample;
  read_stat(bounded(texts.stat), sample);
  read_status(bounded(texts.status), sample);
  const std::string_view wchan = trim(bounded(texts.wchan));
  if (wchan != "0") sample.wchan = printable(wchan, kWaitNameBytes);
  sample.syscall = syscall_in(bounded(texts.syscall));
  sample.bytes = bytes_in(bounded(texts.io));
  return sample;
}

std::optional<std::uint64_t> ticks_used(const ProcessSample& first, const ProcessSample& second) {
  return is_same(first, second) ? risen(first.cpu_ticks, second.cpu_ticks) : std::nullopt;
}

ProcessClass class_of(const ProcessSample& first, const ProcessSample& second, std::uint64_t ticks_between) {
  if (has_ended(first.state) || has_ended(second.state) || !is_same(first, second)) return ProcessClass::kGone;
  if (is_stopped(second.state)) return ProcessClass::kStopped;
  const std::uint64_t used = ticks_used(first, second).value_or(0);
  const bool computes = used > ticks_between / 10 && used > 1;
  if (computes || (first.state == 'R' && second.state == 'R')) return ProcessClass::kRun;
  return first.state == 'D' && second.state == 'D' ? ProcessClass::kDisk : ProcessClass::kSleep;
}

std::string describe(ProcessClass what, const ProcessSample& sample) {
  std::string text;
  switch (what) {
    case ProcessClass::kRun: return "running";
    case ProcessClass::kStopped: return "stopped";
    case ProcessClass::kGone: return "gone";
    case ProcessClass::kSleep: text = "sleeping"; break;
    case ProcessClass::kDisk: text = "in an uninterruptible wait"; break;
  }
  if (!sample.wchan.empty()) text += " in " + sample.wchan;
  if (sample.syscall) text += format(", syscall {}", *sample.syscall);
  return text;
}

}  // namespace elastic::evidence
