// What the outer process costs in time. Prints a line for each of N pairs: nanoseconds from the fork of a
// process to its end, when it ends at once, and when it splits off a launcher that ends at once.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "src/process/guardian.h"

namespace {

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t one_run(bool with_guardian) {
  const std::int64_t begin = now_ns();
  const pid_t pid = fork();
  if (pid == 0) {
    if (with_guardian) {
      const auto link = elastic::process::split_off_launcher({.signals = {SIGTERM, SIGINT}, .cgroup = {}});
      _exit(link ? 0 : 1);
    }
    _exit(0);
  }
  int status = 1;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) std::exit(1);
  return now_ns() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int i = 0; i < pairs; ++i) {
    const bool first = i % 2 == 0;
    const std::int64_t one = one_run(first);
    const std::int64_t other = one_run(!first);
    const std::int64_t bare = first ? other : one;
    const std::int64_t guarded = first ? one : other;
    std::printf("%lld %lld\n", static_cast<long long>(bare), static_cast<long long>(guarded));
  }
  return 0;
}
