#include "health/stacks/kernel_state.h"

#include <doctest/doctest.h>

#include <string>

using namespace elastic::stacks;

TEST_CASE("why a process may not be read is told with the remedy") {
  const auto tells = [](const RightFacts& facts, const char* wanted) {
    return no_right_because(facts).find(wanted) != std::string::npos;
  };
  CHECK(tells({.our_user = 1000, .its_user = 0U, .files_user = 0U, .yama_scope = 1}, "runs as user 0 and not 1000"));
  CHECK(tells({.our_user = 1000, .its_user = 1000U, .files_user = 0U, .yama_scope = 1}, "not dumpable"));
  CHECK(tells({.our_user = 7, .its_user = 7U, .files_user = 7U, .yama_scope = 1}, "kernel.yama.ptrace_scope=1"));
  CHECK(tells({.our_user = 7, .its_user = 7U, .files_user = 7U, .yama_scope = 2}, "only to root"));
  CHECK(tells({.our_user = 7, .its_user = 7U, .files_user = 7U, .yama_scope = 3}, "to nobody"));
  CHECK(tells({.our_user = 7}, "the kernel forbids it"));
}
