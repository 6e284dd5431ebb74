#include "rendezvous/protocol/random_id.h"

#include <doctest/doctest.h>

using namespace elastic::protocol;

TEST_CASE("a random number names an agent or an incarnation as it is, unless it is the one that stands for none") {
  CHECK(random_id(2) == 2);
  CHECK(random_id(~0ULL) == ~0ULL);
  CHECK(random_id(0) != 0);
}
