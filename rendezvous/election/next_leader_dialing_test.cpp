#include "rendezvous/election/next_leader_dialing.h"

#include <doctest/doctest.h>

using elastic::election::NextLeaderDialing;

TEST_CASE("next leaders are dialled in turn every 250 ms for 2T, and after that with the ordinary pauses") {
  NextLeaderDialing dialing(3, {}, 1'000);
  CHECK(dialing.dial() == 0);
  CHECK(dialing.again_at_ms(1'000, false, 1'010) == 1'250);
  CHECK(dialing.again_at_ms(1'000, false, 1'900) == 1'900);
  CHECK(dialing.again_at_ms(1'000, true, 1'010) == 1'010);
  CHECK(dialing.dial() == 1);
  CHECK(dialing.dial() == 2);
  CHECK(dialing.again_at_ms(1'020, true, 1'030) == 1'270);  // all of them have refused: still a step
  CHECK(dialing.dial() == 0);
  CHECK(dialing.again_at_ms(10'900, true, 10'999) == 10'999);
  CHECK_FALSE(dialing.again_at_ms(10'990, false, 11'000));
}
