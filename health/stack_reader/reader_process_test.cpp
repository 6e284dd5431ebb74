#include "health/stack_reader/reader_process.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "health/stack_reader/onlooker.h"

using namespace elastic;
using namespace elastic::stacks;

TEST_CASE("a line that is no answer of the reader is refused") {
  CHECK(read_answer(R"({"last":true,"look":{"pid":7,"threads":[{"id":7}]}})"));
  for (const char* other :
       {"", "{}", "[]", "{\"last\":true}", R"({"look":{"pid":7,"threads":[]}})", "[[[[[[[[[[]]]]]]]]]]"}) {
    CHECK(!read_answer(other));
  }
}

TEST_CASE("a process that is no Python process is looked at as the kernel has it") {
  const ProcessLook look = Onlooker().read_process(getpid(), UniqueFd(), EMFILE);
  CHECK(look.problem == "its memory cannot be opened: Too many open files");
  REQUIRE(look.threads.size() == 1);
  CHECK(look.threads[0].wait == "running");
  CHECK(Onlooker::kernel_look(0x3fffffff).problem == "it has ended");
}
