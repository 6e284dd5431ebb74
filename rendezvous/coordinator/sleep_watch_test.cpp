#include "rendezvous/coordinator/sleep_watch.h"

#include <doctest/doctest.h>

using elastic::coordinator::SleepWatch;

TEST_CASE("a long pause before an event that is not a timer's is taken for a sleep") {
  SleepWatch watch(0);
  watch.event_comes(500, {});
  CHECK(watch.caught_up_ms() == 0);
  watch.event_comes(1001, {});
  CHECK(watch.caught_up_ms() == 1251);
}

TEST_CASE("a timer that rings in time after a long pause shows that this process was awake") {
  SleepWatch watch(0);
  watch.event_comes(5050, 5000);
  CHECK(watch.caught_up_ms() == 0);
  watch.event_comes(9051, 9000);
  CHECK(watch.caught_up_ms() == 9301);
}

TEST_CASE("a late timer after a short pause is no sleep") {
  SleepWatch watch(1000);
  watch.event_comes(1400, 1100);
  CHECK(watch.caught_up_ms() == 0);
}
