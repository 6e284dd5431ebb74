#include "health/evidence/store_waiters.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::evidence;

namespace {

const std::string kPlace = "/default_pg/0//cpu//0/";

StoreFacts facts_of(const std::vector<std::string>& keys, const std::vector<StoreWait>& waits, int world_size) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  return store_facts(views, waits, world_size);
}

}  // namespace

TEST_CASE("gloo's key of a rank that has come to init is known by its form, behind any prefix") {
  const auto found = init_key("/default_pg/0//cpu//0/17");
  REQUIRE(found);
  CHECK(found->place == kPlace);
  CHECK(found->is_default_group);
  CHECK(found->rank == 17);
  CHECK(init_key("/worker/attempt_0/default_pg/0//cuda//1/3")->is_default_group);
  CHECK_FALSE(init_key("/tp_0/0//cpu//0/1")->is_default_group);
  for (const std::string_view other :
       {"", "/", "/init/", "/default_pg/0//cpu//0/", "/default_pg/0//cpu//0/x", "/default_pg/0//cpu/0/1",
        "/default_pg/0/cpu//0/1", "/default_pg//cpu//0/1", "/default_pg/x//cpu//0/1", "/default_pg/0//cpu//x/1",
        "/default_pg/0////0/1", "//0//cpu//0/1", "/default_pg/0//cpu//0/-1", "/default_pg/0//cpu//0/99999999999999",
        "/default_pg/0//cpu//0/rank_1"}) {
    CAPTURE(other);
    CHECK_FALSE(init_key(other));
  }
}

TEST_CASE("a rank that never came to init is one without a key where others wait") {
  const auto facts = facts_of({"/init/", kPlace + "0", kPlace + "2"},
                              {{.rank = 0, .keys = {kPlace + "1"}}, {.rank = 2, .keys = {kPlace + "1"}}}, 3);
  CHECK(facts.never_came == std::vector{1});
  CHECK(facts.came == std::vector{0, 2});
  REQUIRE(facts.awaited.size() == 1);
  CHECK(facts.awaited[0].key == kPlace + "1");
  CHECK(facts.awaited[0].ranks == std::vector{0, 2});
  CHECK(facts.awaited[0].clients == 2);
}

TEST_CASE("all ranks without a key are named, though the others wait for the first of them only") {
  const auto facts = facts_of({kPlace + "0", kPlace + "3", kPlace + "77"}, {{.rank = {}, .keys = {kPlace + "1"}}}, 5);
  CHECK(facts.never_came == std::vector{1, 2, 4});
  CHECK(facts.awaited[0].ranks.empty());
  CHECK(facts.awaited[0].clients == 1);
}

TEST_CASE("where nobody waits for init nobody is named, and neither is a rank of another group") {
  CHECK(facts_of({kPlace + "0"}, {}, 3).never_came.empty());
  CHECK(facts_of({}, {{.rank = 0, .keys = {"/tp/0//cpu//0/1"}}}, 3).never_came.empty());
  // A wait that ends right now: its key is there.
  CHECK(facts_of({kPlace + "0", kPlace + "1"}, {{.rank = 0, .keys = {kPlace + "1"}}}, 3).never_came.empty());
}

TEST_CASE("of several inits the one that most wait in counts") {
  const std::string again = "/default_pg/1//cpu//0/";
  const auto facts = facts_of({kPlace + "0", kPlace + "1", kPlace + "2", again + "0", again + "1"},
                              {{.rank = 0, .keys = {again + "2"}}, {.rank = 1, .keys = {again + "2"}}}, 3);
  CHECK(facts.never_came == std::vector{2});
}

TEST_CASE("keys that are waited for are listed, those with the most clients first, and bounded") {
  std::vector<StoreWait> waits = {
      {.rank = 3, .keys = {"/b", "/c"}}, {.rank = 1, .keys = {"/c"}}, {.rank = {}, .keys = {"/there"}}};
  const auto facts = facts_of({"/there"}, waits, 4);
  REQUIRE(facts.awaited.size() == 2);
  CHECK(facts.awaited[0].key == "/c");
  CHECK(facts.awaited[0].ranks == std::vector{1, 3});
  CHECK(facts.awaited[1].key == "/b");
  CHECK_FALSE(facts.has_more_awaited);
  for (std::size_t i = 0; i <= kAwaitedKeys; ++i) waits.push_back({.rank = {}, .keys = {format("/many\n{}", i)}});
  const auto many = facts_of({}, waits, 4);
  CHECK(many.awaited.size() == kAwaitedKeys);
  CHECK(many.has_more_awaited);
  CHECK(many.awaited.back().key.starts_with("/many\\x0a"));
}
