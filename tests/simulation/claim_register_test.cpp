#include "tests/simulation/claim_register.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace elastic;
using namespace elastic::simulation;

namespace {

struct Place {
  Place() : here(network.add_host()), there(network.add_host()) {}

  // What the caller hears, in the order in which it hears it.
  ClaimRegister::Done hear() {
    return [this](const locate::RegisterAnswer& answer) {
      heard += (answer ? "[" + *answer + "]" : answer.error().reason) + "; ";
    };
  }
  std::string all_that_is_heard() {
    while (timeline.step()) {
    }
    return std::exchange(heard, {});
  }

  Timeline timeline;
  Trace trace{nullptr};
  Network network{timeline, trace, Random(1)};
  int here;
  int there;
  ClaimRegister claims{timeline, trace, network, Random(2), 5};
  std::string heard;
};

}  // namespace

TEST_CASE("of two hosts that write a claim one is first, and both hear which") {
  Place place;
  place.claims.compare_set(place.here, "", "a", place.hear());
  CHECK(place.all_that_is_heard() == "[a]; ");
  place.claims.compare_set(place.there, "", "b", place.hear());
  CHECK(place.all_that_is_heard() == "[a]; ");
}

TEST_CASE("a write that takes long is given up, and has its effect nevertheless") {
  Place place;
  place.claims.slow(100'000);
  place.claims.compare_set(place.here, "", "a", place.hear());
  CHECK(place.all_that_is_heard() == "it does not answer; ");
  place.claims.calm();
  place.claims.read(place.here, place.hear());
  CHECK(place.all_that_is_heard() == "[a]; ");
}

TEST_CASE("a host that is cut off is not answered, while others are; writes that are refused change nothing") {
  Place place;
  place.claims.cut(place.here);
  place.claims.compare_set(place.here, "", "a", place.hear());
  CHECK(place.all_that_is_heard() == "it does not answer; ");
  place.claims.refuse(1);
  place.claims.compare_set(place.there, "", "b", place.hear());
  CHECK(place.all_that_is_heard() == "it cannot be written; ");
  place.claims.refuse(-1);
  place.claims.read(place.there, place.hear());
  CHECK(place.all_that_is_heard() == "[]; ");
}
