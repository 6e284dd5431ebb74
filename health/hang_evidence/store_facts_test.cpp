#include "health/hang_evidence/store_facts.h"

#include <doctest/doctest.h>

#include <array>
#include <string_view>

namespace elastic::hang {

TEST_CASE("ranks that have come to an init in which somebody waits are those that wait for the ones that have not") {
  constexpr std::array<std::string_view, 2> kKeys = {"/default_pg/0//cpu//0/0", "/default_pg/0//cpu//0/2"};
  const std::vector<evidence::StoreWait> waits = {{.keys = {"/default_pg/0//cpu//0/1"}},
                                                  {.keys = {"/default_pg/0//cpu//0/1"}}};
  const evidence::StoreFacts seen = evidence::store_facts(kKeys, waits, 3);
  const StoreFacts facts = store_facts_of(seen, 3);
  CHECK(facts.absent.text() == "1");
  CHECK(facts.waiting.text() == "0,2");
  CHECK(store_lines(seen) == std::vector<std::string>{"key /default_pg/0//cpu//0/1: 2 clients wait for it"});
}

TEST_CASE("of each key that is waited for it is told who waits, as far as connections are known to be ranks'") {
  const std::vector<evidence::StoreWait> waits = {
      {.rank = 2, .keys = {"0"}}, {.rank = 0, .keys = {"0", "mine"}}, {.keys = {"0"}}};
  const evidence::StoreFacts seen = evidence::store_facts({}, waits, 4);
  const StoreFacts facts = store_facts_of(seen, 4);
  REQUIRE(facts.waits.size() == 2);
  CHECK(facts.waits[0] == StoreWait{.key = "0", .ranks = RankRuns::of({0, 2}), .clients = 3});
  CHECK(store_lines(seen) == std::vector<std::string>{"key 0: 3 clients wait for it, of this node ranks 0,2",
                                                      "key mine: 1 client waits for it, of this node rank 0"});
}

TEST_CASE("where nobody waits for a key of an init nobody is absent") {
  const std::vector<evidence::StoreWait> waits = {{.keys = {"mine"}}};
  const evidence::StoreFacts seen = evidence::store_facts({}, waits, 3);
  CHECK(store_facts_of(seen, 3) == StoreFacts{.waits = {{.key = "mine", .clients = 1}}});
  CHECK(store_lines(seen) == std::vector<std::string>{"key mine: 1 client waits for it"});
}

}  // namespace elastic::hang
