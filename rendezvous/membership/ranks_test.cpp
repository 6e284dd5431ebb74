#include "rendezvous/membership/ranks.h"

#include <doctest/doctest.h>

using namespace elastic;
using membership::assign_places;

TEST_CASE("one node has all ranks") {
  CHECK(assign_places({{4, "default"}}) ==
        std::vector<protocol::NodePlace>{{0, 1, 0, 4, 0, 4}});
}

TEST_CASE("nodes of different size and role get consecutive global and role ranks") {
  const auto places = assign_places({{2, "trainer"}, {1, "ps"}, {3, "trainer"}});
  CHECK(places == std::vector<protocol::NodePlace>{
                      {0, 3, 0, 6, 0, 5}, {1, 3, 2, 6, 0, 1}, {2, 3, 3, 6, 2, 5}});
}
