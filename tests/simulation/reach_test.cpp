#include "tests/simulation/reach.h"

#include <doctest/doctest.h>

using namespace elastic::simulation;

namespace {

constexpr Reach::Times kTimes{.attempt_ms = 100, .pause_ms = 2'000, .unanswered_ms = 5'000};

// An agent that lost its session at 0 ms, when the way to the coordinator was closed.
Reach lost() {
  Reach reach;
  reach.begin(0);
  return reach;
}

}  // namespace

TEST_CASE("an attempt while the way was open for long enough was a chance") {
  Reach reach = lost();
  reach.is_open(true, 1'000);
  reach.tries(1'100);
  reach.has_failed(1'150);
  reach.is_open(false, 1'199);
  CHECK_FALSE(reach.chance(0, 9'000, kTimes));
  reach.is_open(true, 2'000);
  reach.tries(2'100);
  reach.is_open(false, 2'200);
  CHECK(reach.chance(0, 9'000, kTimes));
}

TEST_CASE("an attempt that the agent gave up because its lease was over was none") {
  Reach reach = lost();
  reach.is_open(true, 1'000);
  reach.tries(1'100);
  reach.lease_is_over(1'120);
  reach.is_open(false, 1'300);
  CHECK_FALSE(reach.chance(0, 9'000, kTimes));
}

TEST_CASE("an open way that the agent does not try for longer than its longest pause was a chance") {
  Reach reach = lost();
  reach.is_open(true, 1'000);
  reach.is_open(false, 3'000);
  CHECK_FALSE(reach.chance(0, 9'000, kTimes));
  reach.is_open(true, 4'000);
  CHECK(reach.chance(0, 6'001, kTimes));
}

TEST_CASE("an agent is cut off that has had neither a session since then nor a chance to get one") {
  Reach reach = lost();
  reach.tries(900);
  reach.is_open(true, 1'000);  // the attempt before that may be as good as lost
  CHECK(reach.is_cut_off(500, 3'000, kTimes));
  CHECK_FALSE(reach.is_cut_off(0, 3'000, kTimes));
  reach.tries(3'000);
  CHECK_FALSE(reach.is_cut_off(500, 3'100, kTimes));
  reach.attached(3'100);
  CHECK_FALSE(reach.is_cut_off(3'000, 3'200, kTimes));
}
