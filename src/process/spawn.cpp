#include "src/process/spawn.h"

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/text.h"

namespace elastic::process {
namespace {

constexpr int kFirstOther = 3;  // after stdin, stdout, stderr

// All that the child needs, made before the fork: between vfork and exec it shares our memory and may
// only make system calls.
struct Prepared {
  const char* path;
  char* const* argv;
  char* const* envp;
  const InheritedState* inherited;
  pid_t launcher;
  rlim_t open_files_limit;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

void close_other_descriptors(rlim_t limit) {
  if (syscall(SYS_close_range, kFirstOther, ~0U, 0) == 0) return;
  // Kernels before 5.9.
  for (rlim_t fd = kFirstOther; fd < limit; ++fd) close(static_cast<int>(fd));
}

// Runs in the child. Returns the errno of what failed; does not return when the program runs.
int become(const Prepared& prepared) {
  if (setsid() < 0) return errno;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  // The launcher may have died before the line above took effect.
  if (getppid() != prepared.launcher) return ESRCH;
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  if (sigaction(SIGPIPE, &default_action, nullptr) != 0) return errno;
  if (sigaction(SIGCHLD, &prepared.inherited->child_action, nullptr) != 0) return errno;
  if (setrlimit(RLIMIT_NOFILE, &prepared.inherited->open_files) != 0) return errno;
  close_other_descriptors(prepared.open_files_limit);
  if (sigprocmask(SIG_SETMASK, &prepared.inherited->signal_mask, nullptr) != 0) return errno;
  execve(prepared.path, prepared.argv, prepared.envp);
  return errno;
}

std::unexpected<Error> cannot_execute(const Command& command, int error_number) {
  std::string remedy;
  if (error_number == ENOEXEC) remedy = "give it a #! line or build it for this machine";
  if (error_number == ENOENT) remedy = "install what its #! line names, or the loader that it was built for";
  if (error_number == EACCES) remedy = "check its permissions (chmod +x)";
  if (error_number == E2BIG) remedy = "shorten the arguments or the environment";
  return fail_errno(format("cannot execute {}", printable(command.path)), error_number, remedy);
}

}  // namespace

InheritedState InheritedState::capture() {
  InheritedState state;
  sigprocmask(SIG_SETMASK, nullptr, &state.signal_mask);
  sigaction(SIGCHLD, nullptr, &state.child_action);
  getrlimit(RLIMIT_NOFILE, &state.open_files);
  return state;
}

Result<Child> spawn(const Command& command, const InheritedState& inherited) {
  const std::vector<char*> argv = pointers(command.arguments);
  const std::vector<char*> envp = pointers(command.environment);
  rlimit open_files{};
  getrlimit(RLIMIT_NOFILE, &open_files);
  const Prepared prepared{command.path.c_str(), argv.data(),  envp.data(),
                          &inherited,           getpid(),     open_files.rlim_cur};
  // No handler of ours may run in the child while it shares our memory.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  volatile int child_error = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t pid = vfork();
#pragma GCC diagnostic pop
  if (pid == 0) {
    child_error = become(prepared);
    _exit(127);
  }
  const int fork_error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return fail_errno(format("cannot start a process for {}", printable(command.path)), fork_error,
                      fork_error == EAGAIN ? "raise the limit of processes (ulimit -u, pids.max)" : "");
  }
  if (child_error != 0) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return cannot_execute(command, child_error);
  }
  return Child{pid, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))};
}

}  // namespace elastic::process
