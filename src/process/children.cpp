#include "src/process/children.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace elastic::process {
namespace {

ExitStatus exit_status(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {.code = info.si_status};
  return {.signal = info.si_status, .core_dumped = info.si_code == CLD_DUMPED};
}

// Asks for a child that has ended, without waiting.
std::optional<EndedChild> ended(idtype_t which, pid_t child, int more) {
  siginfo_t info{};
  if (waitid(which, static_cast<id_t>(child), &info, WEXITED | WNOHANG | more) != 0 || info.si_pid == 0) return {};
  return EndedChild{info.si_pid, exit_status(info)};
}

bool is_there(idtype_t which, int number) {
  siginfo_t info{};
  return waitid(which, static_cast<id_t>(number), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

std::optional<pid_t> fork_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child < 0 ? std::nullopt : std::optional(child);
}

std::optional<EndedChild> ended_child() { return ended(P_ALL, 0, WNOWAIT); }
std::optional<EndedChild> reap_any_child() { return ended(P_ALL, 0, 0); }

std::optional<ExitStatus> reap_child(pid_t child) {
  const auto found = ended(P_PID, child, 0);
  return found ? std::optional(found->status) : std::nullopt;
}

void reap_children() {
  while (reap_any_child()) {
  }
}

ExitStatus wait_for_child(pid_t child) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED) != 0 && errno == EINTR) {
  }
  return exit_status(info);
}

bool has_children() { return is_there(P_ALL, 0); }
bool is_child(pid_t process) { return is_there(P_PID, process); }
bool is_child_at(int pidfd) { return is_there(P_PIDFD, pidfd); }

bool is_stopped_child(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

}  // namespace elastic::process
