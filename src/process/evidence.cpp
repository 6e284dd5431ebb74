#include "src/process/evidence.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>

#include "src/base/text.h"
#include "src/process/cgroup.h"

namespace elastic::process {
namespace {

constexpr std::string_view kOomKill = "oom_kill ";
constexpr int kReadsPerCall = 10'000;
constexpr std::size_t kEventsPerCall = 64;
constexpr std::size_t kRecordBytes = 8192;  // the kernel's bound of one record
constexpr std::size_t kTextBytes = 400;     // of a line in a message

// A small file of /proc without its line end; empty if it cannot be read.
std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

OomCounter::OomCounter(const std::string& root) {
  if (const auto place = own_cgroup_place("memory", root)) {
    if (use(place->directory() + "/memory.oom_control")) return;
  }
  if (auto place = own_cgroup_place({}, root)) {
    for (;;) {
      if (use(place->directory() + "/memory.events")) return;
      if (place->path.empty()) break;
      place->path.erase(place->path.rfind('/'));
    }
  }
  whole_host_ = use(path_in(root, "/proc/vmstat"));
}

bool OomCounter::use(std::string file) {
  file_ = std::move(file);
  const auto count = read();
  if (!count) file_.clear();
  marked_ = count.value_or(0);
  return count.has_value();
}

// Reads the line "oom_kill N", which all three files have.
std::optional<std::uint64_t> OomCounter::read() const {
  if (file_.empty()) return {};
  std::ifstream file(file_);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kOomKill)) continue;
    const auto count = parse_int(std::string_view(line).substr(kOomKill.size()));
    if (count && *count >= 0) return static_cast<std::uint64_t>(*count);
  }
  return {};
}

OomCounter::Kills OomCounter::since_mark() const {
  const auto now = read();
  if (!now || *now <= marked_) return {};
  return {*now - marked_, format("{}: oom_kill {} ({} before)", file_, *now, marked_)};
}

void OomCounter::mark() { marked_ = read().value_or(marked_); }

namespace {

// The number that `text` begins with; none if it is no number or too large for a pid.
std::optional<int> leading_number(std::string_view text) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = length == 0 ? std::nullopt : parse_int(text.substr(0, length));
  if (!number || *number > std::numeric_limits<int>::max()) return {};
  return static_cast<int>(*number);
}

// The text behind `mark`; none if `mark` is not in it.
std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  return text.substr(at + mark.size());
}

// What the number means is in src/report/xid.h and health/gpu/judge_gpu.h.
std::optional<KernelEvent> parse_xid(std::string_view message) {
  const auto device = after(message, "NVRM: Xid (");
  const auto number = device ? after(*device, "): ") : std::nullopt;
  if (!number || !leading_number(*number)) return {};
  return KernelEvent{.kind = KernelEvent::Kind::kXid, .text = printable(message, kTextBytes)};
}

// Linux writes "Killed process" since version 5.0. Older kernels write a line before it with "Kill process", which
// ends with "or sacrifice child"; the process that was killed is named by the next line.
std::optional<KernelEvent> parse_oom_kill(std::string_view message) {
  const bool begins = message.starts_with("Out of memory") || message.starts_with("Memory cgroup out of memory") ||
                      message.starts_with("Killed process ");
  const auto rest = begins ? after(message, "Killed process ") : std::nullopt;
  const auto pid = rest ? leading_number(*rest) : std::nullopt;
  if (!pid) return {};
  return KernelEvent{.kind = KernelEvent::Kind::kOomKill, .pid = *pid, .text = printable(message, kTextBytes)};
}

}  // namespace

std::optional<KernelEvent> parse_kernel_message(std::string_view message) {
  if (auto event = parse_xid(message)) return event;
  return parse_oom_kill(message);
}

namespace {

// Reads a record's first line, "priority,sequence,time,flags[,...];message". Returns nothing if a process wrote it, not
// the kernel, and for the record's further lines (" KEY=value"), which begin with no priority.
std::optional<KernelEvent> event_of(std::string_view line) {
  const std::size_t end = line.find(';');
  const auto priority = leading_number(line);
  if (end == std::string_view::npos || !priority || *priority >= 8) return {};
  auto event = parse_kernel_message(line.substr(end + 1));
  const std::vector<std::string> fields = split(line.substr(0, end), ',');
  if (event && fields.size() > 2) event->time_us = std::max<std::int64_t>(parse_int(fields[2]).value_or(0), 0);
  return event;
}

}  // namespace

Result<KernelLog> KernelLog::open(const std::string& root, From from) {
  const std::string path = path_in(root, "/dev/kmsg");
  UniqueFd records(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!records || lseek(records.get(), 0, from == From::kNow ? SEEK_END : SEEK_SET) < 0) {
    return fail_errno(format("cannot read the kernel log {}", path), errno);
  }
  return KernelLog(std::move(records));
}

void KernelLog::take_lines(std::string_view bytes) {
  unread_ += bytes;
  std::size_t taken = 0;
  for (std::size_t end; (end = unread_.find('\n', taken)) != std::string::npos; taken = end + 1) {
    if (auto event = event_of(std::string_view(unread_).substr(taken, end - taken)))
      waiting_.push_back(std::move(*event));
  }
  unread_.erase(0, taken);
  if (unread_.size() > kRecordBytes) unread_.clear();
}

std::vector<KernelEvent> KernelLog::read_new() {
  std::array<char, kRecordBytes> buffer;
  is_at_end_ = false;
  for (int i = 0; i < kReadsPerCall && waiting_.size() < kEventsPerCall; ++i) {
    const ssize_t length = read(records_.get(), buffer.data(), buffer.size());
    // EPIPE says that records were overwritten before they were read; the next read goes on behind them.
    if (length < 0 && (errno == EINTR || errno == EPIPE)) continue;
    is_at_end_ = length <= 0;
    if (is_at_end_) break;
    take_lines({buffer.data(), static_cast<std::size_t>(length)});
  }
  const auto kept = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kEventsPerCall));
  std::vector<KernelEvent> events(std::make_move_iterator(waiting_.begin()),
                                  std::make_move_iterator(waiting_.begin() + kept));
  waiting_.erase(waiting_.begin(), waiting_.begin() + kept);
  return events;
}

namespace {

// A text as the kernel puts it into the name of a core file: no '/', and not "." or "..".
std::string core_name_part(std::string text) {
  if (text == "." || text == "..") text[0] = '!';
  std::ranges::replace(text, '/', '!');
  return text;
}

// The text that replaces %<c>; empty for a letter that the kernel does not know, as the kernel leaves those out.
std::string core_macro(char c, const CrashedProcess& process) {
  switch (c) {
    case '%': return "%";
    case 'p': return format("{}", process.pid);
    case 'u': return format("{}", process.uid);
    case 'g': return format("{}", process.gid);
    case 's': return format("{}", process.signal);
    case 'h': return core_name_part(process.hostname);
    case 'e': return core_name_part(process.name);
    case 'f': return core_name_part(process.executable.substr(process.executable.rfind('/') + 1));
    case 'E': return core_name_part(process.executable);
    case 'c': return format("{}", process.core_limit_bytes);
    // The pid outside of a container, threads, the dump mode, the time, the CPU.
    case 'P':
    case 'i':
    case 'I':
    case 'd':
    case 't':
    case 'C': return "*";
    default: return {};
  }
}

}  // namespace

CorePlace expand_core_pattern(std::string_view pattern, bool core_uses_pid, const CrashedProcess& process) {
  using Kind = CorePlace::Kind;
  if (pattern.starts_with('|')) {
    const std::string_view command = trim(pattern.substr(1));
    return {Kind::kReceiver, std::string(command.substr(0, command.find(' ')))};
  }
  if (pattern.starts_with('@')) {
    return {Kind::kReceiver,
            format("the socket {}", pattern.substr(std::min(pattern.find_first_not_of('@'), pattern.size())))};
  }
  if (process.core_limit_bytes == 0) return {Kind::kNone, "the core size limit is 0 (ulimit -c)"};
  if (pattern.empty() && !core_uses_pid) return {Kind::kNone, "kernel.core_pattern is empty"};

  std::string name;
  bool has_pid = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += pattern[i];
    } else if (++i < pattern.size()) {
      name += core_macro(pattern[i], process);
      has_pid = has_pid || pattern[i] == 'p';
    }
  }
  if (core_uses_pid && !has_pid) name += format(".{}", process.pid);
  if (!name.starts_with('/')) name = path_in(process.working_directory, "/" + name);
  return {Kind::kFile, std::move(name)};
}

CorePlace core_place(const CrashedProcess& process, const std::string& root) {
  const bool uses_pid = read_line(path_in(root, "/proc/sys/kernel/core_uses_pid")).starts_with('1');
  return expand_core_pattern(read_line(path_in(root, "/proc/sys/kernel/core_pattern")), uses_pid, process);
}

std::string CorePlace::text(pid_t pid) const {
  switch (kind) {
    case Kind::kFile: return format("core file {}", printable(where, kTextBytes));
    case Kind::kReceiver:
      return format("core handed to {}{}", printable(where, kTextBytes),
                    where.ends_with("/systemd-coredump") ? format("; see coredumpctl info {}", pid) : "");
    case Kind::kNone: break;
  }
  return format("no core file: {}", where);
}

}  // namespace elastic::process
