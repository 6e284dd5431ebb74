#include "health/stacks/kernel_state.h"

#include <doctest/doctest.h>

using namespace elastic::stacks;

TEST_CASE("a process's name and state are read whatever the name is") {
  CHECK(kernel_state("4711 (python) S 1 4711").state == 'S');
  CHECK(kernel_state("4711 (a) R (b\x1b) D 1 4711").name == "a) R (b\\x1b");
  CHECK(kernel_state("4711 (a) R (b) D 1 4711").state == 'D');
  for (const char* none : {"", "4711", "4711 (", ")(", "1 (a)", "1 (a) "}) CHECK(kernel_state(none).state == '?');
}

TEST_CASE("a process's user is the effective one") {
  CHECK(user_of("Name:\tpython\nUid:\t0\t1000\t0\t0\nGid:\t0\n") == 1000U);
  CHECK(!user_of("Name:\tpython\n"));
  CHECK(!user_of("Name:\tpython\nUid:\t0\n"));
  CHECK(!user_of("Name:\tpython\nUid:\tx\ty\n"));
}

TEST_CASE("what a thread does is told in words") {
  CHECK(wait_text('R', "0", "running\n") == "running");
  CHECK(wait_text('T', "do_signal_stop", "") == "stopped in do_signal_stop");
  CHECK(wait_text('S', "0", "") == "sleeping");
  CHECK(wait_text('D', "fuse\x9bwait", "9999 0x0") == "in uninterruptible sleep in fuse\\x9bwait");
#ifdef __x86_64__
  CHECK(wait_text('S', "futex_do_wait", "202 0x7f 0x80") == "sleeping in futex_do_wait (futex)");
#endif
}
