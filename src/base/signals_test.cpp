#include "src/base/signals.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("signals are known by name, with and without SIG, and named by number") {
  CHECK(signal_number("SIGTERM") == 15);
  CHECK(signal_number("USR1") == 10);
  CHECK(!signal_number("sigterm"));
  CHECK(!signal_number(""));
  CHECK(!signal_number("SIGNOPE"));
  CHECK(signal_name(9) == "SIGKILL");
  CHECK(signal_name(37) == "SIGRTMIN+3");
  CHECK(signal_name(0) == "signal 0");
}
