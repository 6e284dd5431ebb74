#include "rendezvous/election/authority.h"

#include <doctest/doctest.h>

using namespace elastic::election;

TEST_CASE("whoever may act until a time grants nothing that lasts longer, by a clock that is slower by 1 %") {
  const Authority authority = Authority::until(10'000);
  CHECK(authority.ends_ms() == 10'000);
  CHECK(authority.holds(9'999));
  CHECK_FALSE(authority.holds(10'000));
  CHECK(authority.good_for_ms(7'000) == 2'970);
  CHECK(authority.good_for_ms(9'999) == 0);
  CHECK(authority.good_for_ms(10'000) == 0);
  CHECK(authority.good_for_ms(20'000) == 0);
}

TEST_CASE("whoever may always act grants whatever is asked for, and whoever may not at all grants nothing") {
  CHECK(Authority::always().holds(0));
  CHECK_FALSE(Authority::always().ends_ms());
  CHECK_FALSE(Authority::always().good_for_ms(5));
  CHECK_FALSE(Authority::none().holds(0));
  CHECK(Authority::none().good_for_ms(5) == 0);
}
