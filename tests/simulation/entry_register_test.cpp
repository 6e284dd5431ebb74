#include "tests/simulation/entry_register.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace elastic;
using namespace elastic::simulation;

namespace {

struct Place {
  Place() : here(network.add_host()), there(network.add_host()) {}

  // What the caller hears, in the order in which it hears it.
  EntryRegister::Done hear() {
    return [this](const discovery::RegisterAnswer& answer) {
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
  EntryRegister entries{timeline, trace, network, Random(2), 5};
  std::string heard;
};

}  // namespace

TEST_CASE("of two hosts that write an entry one is first, and both hear which") {
  Place place;
  place.entries.compare_set(place.here, "", "a", place.hear());
  CHECK(place.all_that_is_heard() == "[a]; ");
  place.entries.compare_set(place.there, "", "b", place.hear());
  CHECK(place.all_that_is_heard() == "[a]; ");
}

TEST_CASE("a write that takes long is given up, and has its effect nevertheless") {
  Place place;
  place.entries.slow(100'000);
  place.entries.compare_set(place.here, "", "a", place.hear());
  CHECK(place.all_that_is_heard() == "it does not answer; ");
  place.entries.calm();
  place.entries.read(place.here, place.hear());
  CHECK(place.all_that_is_heard() == "[a]; ");
}

TEST_CASE("a host that is cut off is not answered, while others are; writes that are refused change nothing") {
  Place place;
  place.entries.cut(place.here);
  place.entries.compare_set(place.here, "", "a", place.hear());
  CHECK(place.all_that_is_heard() == "it does not answer; ");
  place.entries.refuse(1);
  place.entries.compare_set(place.there, "", "b", place.hear());
  CHECK(place.all_that_is_heard() == "it cannot be written; ");
  place.entries.refuse(-1);
  place.entries.read(place.there, place.hear());
  CHECK(place.all_that_is_heard() == "[]; ");
}
