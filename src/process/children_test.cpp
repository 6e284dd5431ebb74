#include "src/process/children.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/unique_fd.h"

using namespace elastic;
using namespace elastic::process;

namespace {

// A child that does not end by itself.
pid_t waiting_child() {
  return fork_child([]() -> int {
           for (;;) pause();
         })
      .value();
}

void until_ended(pid_t child) {
  while (!ended_child()) poll(nullptr, 0, 1);
  REQUIRE(ended_child()->pid == child);
}

}  // namespace

TEST_CASE("a child ends with what its work returns, or by a signal, and is waited for") {
  CHECK(wait_for_child(fork_child([] { return 7; }).value()) == ExitStatus{.code = 7});
  const pid_t child = waiting_child();
  kill(child, SIGKILL);
  CHECK(wait_for_child(child) == ExitStatus{.signal = SIGKILL});
  CHECK_FALSE(is_child(child));
}

TEST_CASE("a child that has ended is seen until it is reaped, once") {
  const pid_t child = fork_child([] { return 3; }).value();
  until_ended(child);
  CHECK(ended_child()->status == ExitStatus{.code = 3});
  CHECK(has_children());
  CHECK(is_child(child));
  SUBCASE("by its pid") {
    CHECK_FALSE(reap_child(getppid()));
    CHECK(reap_child(child) == ExitStatus{.code = 3});
    CHECK_FALSE(reap_child(child));
  }
  SUBCASE("as any") {
    CHECK(reap_any_child()->pid == child);
    CHECK_FALSE(reap_any_child());
  }
  SUBCASE("with all others") { reap_children(); }
  CHECK_FALSE(ended_child());
  CHECK_FALSE(has_children());
  CHECK_FALSE(is_child(child));
}

TEST_CASE("a child that runs is none that has ended, and one that is stopped is seen to be") {
  const pid_t child = waiting_child();
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  CHECK(is_child_at(pidfd.get()));
  CHECK(has_children());
  CHECK_FALSE(ended_child());
  CHECK_FALSE(reap_child(child));
  CHECK_FALSE(is_stopped_child(child));
  kill(child, SIGSTOP);
  while (!is_stopped_child(child)) poll(nullptr, 0, 1);
  kill(child, SIGKILL);
  wait_for_child(child);
  CHECK_FALSE(is_child_at(pidfd.get()));
  const UniqueFd parent(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)));
  CHECK_FALSE(is_child_at(parent.get()));
}
