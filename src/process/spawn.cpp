#include "src/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "src/base/text.h"
#include "src/process/children.h"
#include "src/process/guardian.h"

// vfork() by clone3(), which can also place the child in a cgroup. Returns twice, the second time minus errno
// or the child's pid. The return address is kept in a register over the call, for the child overwrites
// the stack that it shares. The address sanitizer knows vfork but not this.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
asm(".text\n"
    ".local elastic_run_vfork_clone3\n"
    ".type elastic_run_vfork_clone3, @function\n"
    "elastic_run_vfork_clone3:\n"
    "  pop %rdx\n"
    "  mov $435, %eax\n"
    "  syscall\n"
    "  push %rdx\n"
    "  ret\n"
    ".size elastic_run_vfork_clone3, . - elastic_run_vfork_clone3\n");
extern "C" long elastic_run_vfork_clone3(clone_args* arguments, std::size_t size) __attribute__((returns_twice));
#else
#define ELASTIC_RUN_NO_VFORK_CLONE3 1
#endif
namespace elastic::process {
namespace {

constexpr int kFirstOther = 3;  // after stdin, stdout, stderr
// Descriptors from this number on are handed over through a socket: log files have high numbers (open_log_file), and a
// child that copied the table up to its own would copy those of other workers, too, and closing them may block.
constexpr int kFirstHandedOver = 256;

// All that the child needs, prepared before the fork: between vfork and exec the child shares our memory and may
// only make system calls.
struct Prepared {
  const char* path;
  char* const* argv;
  char* const* envp;
  const SpawnContext* context;
  pid_t launcher;
  int standard_output;
  int standard_error;
  int channel;
  const Binding* binding;
  int handed_over = -1;  // the socket from which the child takes those from kFirstHandedOver on
  bool born_in_cgroup = false;
  // The descriptors are still the launcher's own; those from `first_unneeded` on are not to be copied.
  bool shares_descriptors = false;
  int first_unneeded = kFirstOther;
  // The child says here what of its binding is refused, as an errno.
  volatile int cpus_refused = 0;
  volatile int memory_refused = 0;
};

// What become() returns where the child cannot get a descriptor table of its own (before Linux 5.9, or by seccomp).
constexpr int kSharesDescriptors = -1;

std::vector<char*> pointers(std::span<const std::string> strings, std::span<const std::string> more = {}) {
  std::vector<char*> out;
  out.reserve(strings.size() + more.size() + 1);
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  for (const std::string& text : more) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Runs in the child: makes `given` its stdout or stderr. Returns an errno, or 0.
int place(const Prepared& prepared, int given, int target) {
  if (given < 0) return 0;
  if (given >= kFirstHandedOver) return take_descriptor(prepared.handed_over, target);
  return dup2(given, target) < 0 ? errno : 0;
}

// Runs in the child, when no other descriptor with the number kChannel is needed any more. Returns an errno, or 0.
int place_channel(int given) {
  if (given < 0) return 0;
  const int result = given == kChannel ? fcntl(given, F_SETFD, 0) : dup2(given, kChannel);
  return result < 0 ? errno : 0;
}

// Runs in the child, which goes on where the kernel refuses. The plain calls, since the C library's may do more.
void bind(Prepared& prepared) {
  if (prepared.binding == nullptr) return;
  const auto& [cpus, policy, nodes] = *prepared.binding;
  if (!cpus.empty() && syscall(SYS_sched_setaffinity, 0, cpus.size() * sizeof cpus[0], cpus.data()) != 0) {
    prepared.cpus_refused = errno;
  }
  // The kernel looks at one bit less than it is told.
  const std::size_t bits = nodes.size() * static_cast<std::size_t>(std::numeric_limits<unsigned long>::digits) + 1;
  if (!nodes.empty() && syscall(SYS_set_mempolicy, policy, nodes.data(), bits) != 0) {
    prepared.memory_refused = errno;
  }
}

// Runs in the child. Returns the errno of what failed; does not return when the program runs.
int become(Prepared& prepared) {
  if (setsid() < 0) return errno;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  // The launcher may have died before the line above took effect.
  if (getppid() != prepared.launcher) return ESRCH;
  // Where Yama restricts ptrace, our other children may read this one's memory (--stacks) only if it says so itself.
  // Execution keeps that. Without Yama it is refused, and not needed.
  prctl(PR_SET_PTRACER, prepared.launcher, 0, 0, 0);
  const SpawnContext& context = *prepared.context;
  // If that fails, process groups and subreapers still find every process.
  if (!prepared.born_in_cgroup && context.cgroup_procs >= 0) (void)!write(context.cgroup_procs, "0", 1);
  if (context.guardian >= 0) introduce_to_guardian(context.guardian, getpid());
  if (prepared.shares_descriptors) {
    const auto first = static_cast<unsigned>(prepared.first_unneeded);
    if (syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_UNSHARE) != 0) return kSharesDescriptors;
  }
  if (const int error = place(prepared, prepared.standard_output, STDOUT_FILENO); error != 0) return error;
  if (const int error = place(prepared, prepared.standard_error, STDERR_FILENO); error != 0) return error;
  if (const int error = place_channel(prepared.channel); error != 0) return error;
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  if (sigaction(SIGPIPE, &default_action, nullptr) != 0) return errno;
  if (sigaction(SIGCHLD, &context.inherited.child_action, nullptr) != 0) return errno;
  if (setrlimit(RLIMIT_NOFILE, &context.inherited.open_files) != 0) return errno;
  close_descriptors_from(prepared.channel < 0 ? kFirstOther : kChannel + 1, context.inherited.open_files.rlim_cur);
  bind(prepared);
  if (sigprocmask(SIG_SETMASK, &context.inherited.signal_mask, nullptr) != 0) return errno;
  execve(prepared.path, prepared.argv, prepared.envp);
  return errno;
}

#ifndef ELASTIC_RUN_NO_VFORK_CLONE3
// The lowest number above the descriptors that the child copies.
int first_unneeded(const Prepared& prepared) {
  int last = std::max({STDERR_FILENO, prepared.handed_over, prepared.channel});
  for (const int descriptor : {prepared.standard_output, prepared.standard_error}) {
    if (descriptor < kFirstHandedOver) last = std::max(last, descriptor);
  }
  return last + 1;
}

// Where there is a cgroup, the child is made in it: moving there takes 80 us and a lock of the whole
// machine. The child shares our descriptors until it copies those that it needs: a copied descriptor must be closed
// again, and closing a log file on a file system that does not answer may block for ever. Where clone3 is refused
// (before Linux 5.7, or by seccomp), plain vfork is used.
inline clone_args how_to_clone(const SpawnContext& context, const Prepared& prepared) {
  clone_args arguments{};
  arguments.flags = CLONE_VM | CLONE_VFORK;
  if (prepared.shares_descriptors) arguments.flags |= CLONE_FILES;
  arguments.exit_signal = SIGCHLD;
  if (!prepared.born_in_cgroup) return arguments;
  arguments.flags |= CLONE_INTO_CGROUP;
  arguments.cgroup = static_cast<__u64>(context.cgroup);
  return arguments;
}
#endif

// Sends the descriptors that a worker is handed; empty where it needs none.
Result<std::optional<HandOver>> hand_over(const Command& command) {
  std::optional<HandOver> way;
  for (const int descriptor : {command.standard_output, command.standard_error}) {
    if (descriptor < kFirstHandedOver) continue;
    if (!way) {
      auto made = HandOver::make();
      if (!made) return std::unexpected(std::move(made.error()));
      way = std::move(*made);
    }
    if (Status put = way->put(descriptor); !put) return std::unexpected(std::move(put.error()));
  }
  return way;
}

std::unexpected<Error> cannot_execute(const std::string& path, int error_number) {
  std::string remedy;
  if (error_number == ENOEXEC) remedy = "give it a #! line or build it for this machine";
  if (error_number == ENOENT) remedy = "install what its #! line names, or the loader that it was built for";
  if (error_number == EACCES) remedy = "check its permissions (chmod +x)";
  if (error_number == E2BIG) remedy = "shorten the arguments or the environment";
  return fail_errno(format("cannot execute {}", printable(path)), error_number, remedy);
}

// A message that carries one descriptor; it must have at least one byte.
struct DescriptorMessage {
  char byte = 0;
  iovec part{&byte, sizeof byte};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};

  DescriptorMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

// What getdents64 writes, one after the other; the name follows and ends with NUL (getdents64(2)).
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  std::uint8_t type;
};
constexpr std::size_t kNameOffset = offsetof(DirectoryEntry, type) + 1;

// The number that a name of /proc/self/fd is; -1 for "." and "..".
int number_of(const char* name) {
  int number = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9') return -1;
    number = number * 10 + (*name - '0');
  }
  return number;
}

bool close_those_listed(int first) {
  const int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (list < 0) return false;
  alignas(DirectoryEntry) char buffer[2048];
  for (;;) {
    const long count = syscall(SYS_getdents64, list, buffer, sizeof buffer);
    if (count <= 0) break;
    for (long at = 0; at < count;) {
      DirectoryEntry entry;
      std::memcpy(&entry, buffer + at, sizeof entry);
      const int number = number_of(buffer + at + kNameOffset);
      if (number >= first && number != list) close(number);
      at += entry.size;
    }
  }
  close(list);
  return true;
}

}  // namespace

InheritedState InheritedState::capture() {
  InheritedState state;
  sigprocmask(SIG_SETMASK, nullptr, &state.signal_mask);
  sigaction(SIGCHLD, nullptr, &state.child_action);
  getrlimit(RLIMIT_NOFILE, &state.open_files);
  return state;
}

Result<pid_t> spawn(const Command& command, const SpawnContext& context, BindingRefusal* refusal) {
  const std::vector<char*> argv = pointers(command.arguments);
  const std::vector<char*> envp = pointers(command.environment, command.variables);
  Prepared prepared{
      command.path.c_str(),   argv.data(),     envp.data(),    &context, getpid(), command.standard_output,
      command.standard_error, command.channel, command.binding};
  const auto way = hand_over(command);
  if (!way) return std::unexpected(way.error());
  if (*way) prepared.handed_over = (*way)->out();
  // No signal handler of ours may run in the child while it shares our memory.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  volatile int child_error = 0;  // vfork needs these in memory, not in registers
  volatile pid_t pid = -1;
#ifndef ELASTIC_RUN_NO_VFORK_CLONE3
  prepared.born_in_cgroup = context.cgroup >= 0 && context.born_in_cgroup;
  prepared.shares_descriptors = true;
  prepared.first_unneeded = first_unneeded(prepared);
  clone_args arguments = how_to_clone(context, prepared);
  const long made = elastic_run_vfork_clone3(&arguments, sizeof arguments);
  if (made == 0) {
    child_error = become(prepared);
    _exit(127);
  }
  if (made > 0) pid = static_cast<pid_t>(made);
  if (child_error == kSharesDescriptors) {
    wait_for_child(pid);
    pid = -1;
    child_error = 0;
  }
#endif
  int fork_error = 0;
  if (pid < 0) {
    prepared.born_in_cgroup = false;
    prepared.shares_descriptors = false;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    pid = vfork();
#pragma GCC diagnostic pop
    if (pid == 0) {
      child_error = become(prepared);
      _exit(127);
    }
    fork_error = errno;
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return fail_errno(format("cannot start a process for {}", printable(command.path)), fork_error,
                      fork_error == EAGAIN ? "raise the limit of processes (ulimit -u, pids.max)" : "");
  }
  if (child_error != 0) {
    wait_for_child(pid);
    return cannot_execute(command.path, child_error);
  }
  if (refusal != nullptr) *refusal = {.cpus = prepared.cpus_refused, .memory = prepared.memory_refused};
  return pid_t{pid};
}

Error become_program(const std::string& path, std::span<const std::string> arguments,
                     std::span<const std::string> environment, const InheritedState& inherited) {
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  sigprocmask(SIG_SETMASK, &inherited.signal_mask, nullptr);
  execve(path.c_str(), argv.data(), envp.data());
  return cannot_execute(path, errno).error();
}

Result<HandOver> HandOver::make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno("cannot make a socket to hand a worker its log files", errno);
  }
  return HandOver(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Status HandOver::put(int descriptor) const {
  DescriptorMessage parcel;
  cmsghdr* attached = CMSG_FIRSTHDR(&parcel.header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(attached), &descriptor, sizeof descriptor);
  if (sendmsg(in_.get(), &parcel.header, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) return {};
  return fail_errno("cannot hand a worker its log file", errno);
}

int take_descriptor(int out, int target) {
  close(target);  // the kernel gives the next descriptor the lowest free number
  DescriptorMessage parcel;
  if (recvmsg(out, &parcel.header, MSG_DONTWAIT) < 0) return errno;
  const cmsghdr* attached = CMSG_FIRSTHDR(&parcel.header);
  if (attached == nullptr || attached->cmsg_type != SCM_RIGHTS) return EBADF;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(attached), sizeof descriptor);
  return descriptor == target ? 0 : EBADF;
}

void close_descriptors_from(int first, rlim_t limit) {
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0) == 0) return;
  if (close_those_listed(first)) return;
  for (rlim_t fd = static_cast<rlim_t>(first); fd < limit; ++fd) close(static_cast<int>(fd));
}

}  // namespace elastic::process
