#include "src/report/failure.h"

#include <doctest/doctest.h>

using namespace elastic::report;

namespace {

ExpiredTimer timer() {
  return {.scope = "load",
          .late_ms = 104,
          .signal = 9,
          .pid = 4711,
          .stack = {{.function = "load_batch", .file = "/job/train.py", .line = 12},
                    {.function = "<module>", .file = "/job/train.py", .line = 30}}};
}

}  // namespace

TEST_CASE("a timer is named by its scope, and by its process where that is not the worker") {
  CHECK(timer_name(timer(), 4711) == "its timer 'load'");
  CHECK(timer_name(timer(), 4700) == "the timer 'load' of its process 4711");
  ExpiredTimer evil = timer();
  evil.scope = "\x1b[2J\n";
  CHECK(timer_name(evil, 4711) == R"(its timer '\x1b[2J\x0a')");
  ExpiredTimer deep = timer();
  deep.scope = "/a" + std::string(1000, 'a') + "/train.py#12";
  CHECK(timer_name(deep, 4711) == "its timer '..." + std::string(48, 'a') + "/train.py#12'");
}

TEST_CASE("where a process stood is the newest call, or nothing") {
  CHECK(timer_place(timer()) == "load_batch train.py:12");
  CHECK(timer_place({}).empty());
}

TEST_CASE("a worker has ended of a timer by its signal whenever that is, and in another way only soon after it") {
  CHECK(may_have_ended(timer(), 4711, {.signal = 9}, 1'000'000));
  CHECK(may_have_ended(timer(), 4711, {.code = 1}, 30'000));
  CHECK_FALSE(may_have_ended(timer(), 4711, {.code = 1}, 30'001));
  CHECK_FALSE(may_have_ended(timer(), 4711, {.signal = 11}, 30'001));
  CHECK(may_have_ended(timer(), 4700, {.code = 1}, 5));
  CHECK_FALSE(may_have_ended(timer(), 4700, {.signal = 9}, 30'001));
}

TEST_CASE("of a stack that is too long the newest calls stay") {
  ExpiredTimer shortened = timer();
  shorten_stack(shortened, 1000);
  CHECK(shortened == timer());
  shorten_stack(shortened, 100);
  CHECK(shortened.stack == HangStack{timer().stack.front()});
  shorten_stack(shortened, 10);
  CHECK(shortened.stack.empty());
}
