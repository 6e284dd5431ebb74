#include "rendezvous/coordinator/event_clock.h"

#include <doctest/doctest.h>

using elastic::coordinator::EventClock;

namespace {

void event_comes(EventClock& clock, std::int64_t now_ms, std::optional<std::int64_t> due_ms) {
  clock.event_comes(now_ms);
  clock.notice_sleep(due_ms);
}

}  // namespace

TEST_CASE("a long pause before an event that is not a timer's is taken for a sleep") {
  EventClock clock(0);
  event_comes(clock, 500, {});
  CHECK(clock.caught_up_ms() == 0);
  event_comes(clock, 1001, {});
  CHECK(clock.caught_up_ms() == 1251);
}

TEST_CASE("a timer that rings in time after a long pause shows that this process was awake") {
  EventClock clock(0);
  event_comes(clock, 5050, 5000);
  CHECK(clock.caught_up_ms() == 0);
  event_comes(clock, 9051, 9000);
  CHECK(clock.caught_up_ms() == 9301);
}

TEST_CASE("a late timer after a short pause is no sleep") {
  EventClock clock(1000);
  event_comes(clock, 1400, 1100);
  CHECK(clock.caught_up_ms() == 0);
}

TEST_CASE("the time of events never goes back") {
  EventClock clock(1000);
  event_comes(clock, 900, {});
  CHECK(clock.now_ms() == 1000);
  event_comes(clock, 1200, {});
  CHECK(clock.now_ms() == 1200);
}

TEST_CASE("the earliest of the times counts at which a coordinator is to look again") {
  EventClock clock(0);
  CHECK(!clock.look_again_ms());
  clock.look_again(500);
  clock.look_again({});
  clock.look_again(700);
  CHECK(clock.look_again_ms() == 500);
  clock.look_again(300);
  CHECK(clock.look_again_ms() == 300);
  clock.wait_for_nothing();
  CHECK(!clock.look_again_ms());
}
