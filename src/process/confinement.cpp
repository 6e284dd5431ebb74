#include "src/process/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace elastic::process {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#endif

constexpr int kAllowed[] = {
    SYS_read,          SYS_pread64,  SYS_write,      SYS_close,      SYS_fstat,           SYS_newfstatat, SYS_lseek,
    SYS_recvmsg,       SYS_recvfrom, SYS_sendto,     SYS_getdents64, SYS_munmap,          SYS_mremap,     SYS_brk,
    SYS_madvise,       SYS_futex,    SYS_exit_group, SYS_exit,       SYS_rt_sigreturn,    SYS_fcntl,      SYS_geteuid,
    SYS_clock_gettime, SYS_ppoll,    SYS_nanosleep,  SYS_readlinkat, SYS_clock_nanosleep,
#if defined(__x86_64__)  // which has the older ones, too
    SYS_poll,          SYS_readlink,
#endif
};

constexpr int kAllowedToConnect[] = {SYS_connect, SYS_getsockopt};

sock_filter step(int code, std::uint32_t value) { return {static_cast<std::uint16_t>(code), 0, 0, value}; }
// Goes on with the next step where the value is equal to (or has a bit of) `value`, or passes over `otherwise` steps.
sock_filter test(int how, std::uint32_t value, std::uint8_t otherwise) {
  return {static_cast<std::uint16_t>(BPF_JMP | how | BPF_K), 0, otherwise, value};
}
sock_filter load(std::size_t offset) { return step(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
// The lower half of an argument, on machines that are little-endian.
std::size_t argument(std::size_t index) { return offsetof(seccomp_data, args) + index * sizeof(std::uint64_t); }

// A system call that is allowed where none of these bits is in one of its arguments.
void allow_without(std::vector<sock_filter>& filter, int call, std::size_t index, int bits) {
  filter.push_back(test(BPF_JEQ, static_cast<std::uint32_t>(call), 4));
  filter.push_back(load(argument(index)));
  filter.push_back(test(BPF_JSET, static_cast<std::uint32_t>(bits), 1));
  filter.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  filter.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

void allow(std::vector<sock_filter>& filter, std::span<const int> calls) {
  for (const int call : calls) {
    filter.push_back(test(BPF_JEQ, static_cast<std::uint32_t>(call), 1));
    filter.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
}

// Sockets of the Internet: others reach what runs on this host.
void allow_sockets(std::vector<sock_filter>& filter) {
  filter.push_back(test(BPF_JEQ, static_cast<std::uint32_t>(SYS_socket), 6));
  filter.push_back(load(argument(0)));
  for (const int family : {AF_INET, AF_INET6}) {
    filter.push_back(test(BPF_JEQ, static_cast<std::uint32_t>(family), 1));
    filter.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
}

std::vector<sock_filter> filter_program(bool may_connect) {
  std::vector<sock_filter> filter;
  filter.push_back(load(offsetof(seccomp_data, arch)));
  filter.push_back(test(BPF_JEQ, kMachine, 1));
  filter.push_back(load(offsetof(seccomp_data, nr)));
  // Where the machine is another one, the next step sees its number, and is passed over, too.
  allow(filter, kAllowed);
  if (may_connect) {
    allow(filter, kAllowedToConnect);
    allow_sockets(filter);
  }
  allow_without(filter, SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
  allow_without(filter, SYS_mmap, 2, PROT_EXEC);
  allow_without(filter, SYS_mprotect, 2, PROT_EXEC);
  filter.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  return filter;
}

// The address sanitizer reserves more memory, and makes more system calls, than any reader may.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kIsConfined = false;
#else
constexpr bool kIsConfined = true;
#endif

}  // namespace

Status confine(const Confinement& confinement) {
  if (!kIsConfined) return {};
  const std::pair<__rlimit_resource, rlim_t> limits[] = {{RLIMIT_AS, confinement.memory_bytes},
                                                         {RLIMIT_CPU, confinement.cpu_s},
                                                         {RLIMIT_FSIZE, 0},
                                                         {RLIMIT_NOFILE, confinement.descriptors},
                                                         {RLIMIT_CORE, 0}};
  for (const auto& [resource, most] : limits) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) return fail_errno("cannot read a limit of this process", errno);
    limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(resource, &limit) != 0) return fail_errno("cannot limit this process", errno);
  }
  std::vector<sock_filter> filter = filter_program(confinement.may_connect);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return fail_errno("cannot filter the system calls of this process", errno);
  }
  return {};
}

}  // namespace elastic::process
