#include "health/stacks/kernel_state.h"

#include <algorithm>
#include <utility>

#include "src/base/text.h"

namespace elastic::stacks {
namespace {

constexpr std::size_t kMostName = 64;

std::string_view state_name(char state) {
  switch (state) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "in uninterruptible sleep";
    case 'T': return "stopped";
    case 't': return "stopped by a debugger";
    case 'Z':
    case 'X': return "ended";
    case 'I': return "idle";
    default: return "in an unknown state";
  }
}

// The system calls in which processes mostly wait; empty for others.
std::string_view call_name(std::int64_t number) {
#ifdef __x86_64__
  constexpr std::pair<int, std::string_view> kCalls[] = {{0, "read"},         {1, "write"},
                                                         {7, "poll"},         {16, "ioctl"},
                                                         {23, "select"},      {35, "nanosleep"},
                                                         {45, "recvfrom"},    {47, "recvmsg"},
                                                         {61, "wait4"},       {72, "fcntl"},
                                                         {73, "flock"},       {74, "fsync"},
                                                         {202, "futex"},      {230, "clock_nanosleep"},
                                                         {232, "epoll_wait"}, {247, "waitid"},
                                                         {257, "openat"},     {270, "pselect6"},
                                                         {271, "ppoll"},      {281, "epoll_pwait"}};
  const auto* found = std::ranges::find(kCalls, number, [](const auto& call) { return std::int64_t{call.first}; });
  if (found != std::end(kCalls)) return found->second;
#else
  static_cast<void>(number);
#endif
  return {};
}

}  // namespace

KernelState kernel_state(std::string_view stat) {
  // "4711 (a name) S ...": the name may contain anything, parentheses too.
  const std::size_t begin = stat.find('(');
  const std::size_t end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin || end + 2 >= stat.size()) {
    return {};
  }
  return {printable(stat.substr(begin + 1, end - begin - 1), kMostName), stat[end + 2]};
}

std::optional<std::uint32_t> user_of(std::string_view status) {
  constexpr std::string_view kName = "\nUid:";
  const std::size_t begin = status.find(kName);
  if (begin == std::string_view::npos) return {};
  const std::string line = replace_all(std::string(status.substr(begin + kName.size(), 100)), "\t", " ");
  const std::vector<std::string> words = split(trim(line.substr(0, line.find('\n'))), ' ');
  const auto user = words.size() < 2 ? std::nullopt : parse_int(words[1]);
  if (!user || *user < 0 || *user > UINT32_MAX) return {};
  return static_cast<std::uint32_t>(*user);
}

std::string wait_text(char state, std::string_view wchan, std::string_view syscall) {
  std::string text(state_name(state));
  if (state == 'R') return text;
  wchan = trim(wchan);
  if (!wchan.empty() && wchan != "0") text += " in " + printable(wchan, kMostName);
  const auto number = parse_int(syscall.substr(0, syscall.find(' ')));
  const std::string_view call = number ? call_name(*number) : "";
  return call.empty() ? text : format("{} ({})", text, call);
}

std::string no_right_because(const RightFacts& facts) {
  if (facts.its_user && *facts.its_user != facts.our_user) {
    return format("its memory may not be read, since it runs as user {} and not {}; ask as that user or as root",
                  *facts.its_user, facts.our_user);
  }
  // The files in /proc of a process that is not dumpable are root's.
  if (facts.files_user && facts.its_user && *facts.files_user != *facts.its_user) {
    return "its memory may not be read, since it is not dumpable: it was started from a setuid program or a file that "
           "may not be read, or has called prctl(PR_SET_DUMPABLE); ask as root";
  }
  if (facts.yama_scope == 1) {
    return "its memory may not be read, since Yama allows that only to a process that has started it "
           "(kernel.yama.ptrace_scope=1); ask as root";
  }
  if (facts.yama_scope == 2) {
    return "its memory may not be read, since Yama allows that only to root (kernel.yama.ptrace_scope=2); ask as root, "
           "or set it to 1";
  }
  if (facts.yama_scope >= 3) {
    return "its memory may not be read, since Yama allows that to nobody (kernel.yama.ptrace_scope=3); set it to 1, "
           "which needs a restart of the host";
  }
  return "its memory may not be read: the kernel forbids it (a security module, or a user namespace)";
}

}  // namespace elastic::stacks
