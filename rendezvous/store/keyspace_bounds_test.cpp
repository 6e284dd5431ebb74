#include "rendezvous/store/keyspace.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "rendezvous/store/keyspace_test_support.h"
#include "rendezvous/store/test_requests.h"
#include "src/base/limits.h"

namespace elastic::store {
namespace {

using namespace test;

// What the limits count for each of these beside its text.
constexpr std::size_t kEntry = limits::kStoreEntryBytes;
constexpr std::size_t kQueue = limits::kStoreQueueBytes;
constexpr std::size_t kItem = limits::kStoreItemBytes;
constexpr std::size_t kWait = limits::kStoreWaitBytes;
constexpr std::size_t kPlace = limits::kStorePlaceBytes;

TEST_CASE("what the store holds is counted by each request that changes it") {
  World world;
  const auto held = [&] { return world.keyspace.held_bytes(); };
  CHECK(held() == 0);
  world.set(1, "/k", "value");
  CHECK(held() == 7 + kEntry);
  world.set(1, "/k", "v");
  CHECK(held() == 3 + kEntry);
  world.compare_set(1, "/k", "v", "longer");
  CHECK(held() == 8 + kEntry);
  world.compare_set(1, "/k", "other", "not stored");
  world.compare_set(1, "/none", "x", "not stored");
  CHECK(held() == 8 + kEntry);
  world.run(1, World::with(Op::kAppend, "/k", "more"));
  world.run(1, World::with(Op::kAppend, "/a", "new"));
  CHECK(held() == 12 + 5 + 2 * kEntry);
  world.add(1, "/n", 9);
  world.add(1, "/n", 1);
  CHECK(held() == 12 + 5 + 4 + 3 * kEntry);
  world.run(1, World::list(Op::kMultiSet, {"/n", "/m", "/m"}, {"", "1", "22"}));
  CHECK(held() == 12 + 5 + 2 + 4 + 4 * kEntry);
  for (const char* key : {"/k", "/a", "/n", "/m", "/none"}) world.run(1, World::with(Op::kDeleteKey, key));
  CHECK(held() == 0);
}

TEST_CASE("queues are counted until their last item is taken") {
  World world;
  world.push(1, "/q", "item");
  world.push(1, "/q", "");
  CHECK(world.keyspace.held_bytes() == 2 + kQueue + 4 + 2 * kItem);
  world.pop("/q");
  CHECK(world.keyspace.held_bytes() == 2 + kQueue + kItem);
  world.pop("/q");
  world.pop("/q");
  CHECK(world.keyspace.held_bytes() == 0);
}

TEST_CASE("waits are counted until they are answered, given up or dropped") {
  World world;
  const auto held = [&] { return world.keyspace.held_bytes(); };
  world.wait(1, {"/a", "/bc", "/a"});
  const std::size_t two = 5 + 2 * (kEntry + kPlace) + kWait;
  CHECK(held() == two);
  world.wait(2, {"/a"});
  CHECK(held() == two + kPlace + kWait);
  world.keyspace.drop(2);
  CHECK(held() == two);
  world.wait(1, {"/a"});  // it replaces the client's first wait
  CHECK(held() == 2 + kEntry + kPlace + kWait);
  world.run(1, World::with(Op::kCancelWait, {}));
  CHECK(held() == 0);
  world.wait(1, {"/a", "/b"});
  world.push(9, "/a", "");  // one key of the wait is there, and the wait goes on
  CHECK(held() == 2 + kEntry + 2 * kPlace + kWait + 2 + kQueue + kItem);
  world.pop("/a");
  world.set(9, "/b", "");
  CHECK(held() == 2 + kEntry);
  CHECK(world.answers(1) == kZero);
  CHECK(world.barrier(1, "/x", 2).empty());
  CHECK(held() == 2 + kEntry + 3 + kEntry + 2 + kEntry + kPlace + kWait);
  CHECK(world.barrier(2, "/x", 2) == kZero);
  CHECK(held() == 2 + kEntry + 3 + kEntry);
}

TEST_CASE("a request that could take the store beyond its bound is refused and changes nothing") {
  constexpr std::size_t kRoom = 4000;
  const std::string rest(kRoom - 2 - kEntry, 'v');
  const std::vector<Command> bringing = {
      World::with(Op::kSet, "/k", rest + "v"),
      World::with(Op::kCompareSet, "/k", rest + "v"),
      World::with(Op::kAppend, "/k", rest + "v"),
      World::number(Op::kAdd, std::string(kRoom - kEntry, 'k'), 1),
      World::number(Op::kBarrier, std::string(kRoom / 2, 'k'), 2),
      World::with(Op::kQueuePush, "/q", std::string(kRoom - 2 - kQueue - kItem + 1, 'v')),
      World::list(Op::kMultiSet, {"/a", "/b", "/a"}, {"", rest, rest}),
      World::list(Op::kWait, std::vector<std::string>(100, "/w")),
  };
  for (const Command& command : bringing) {
    CAPTURE(static_cast<int>(command.op));
    World world(kRoom);
    CHECK(world.wait(1, {"/a", "/k", "/q"}).empty());
    const std::size_t before = world.keyspace.held_bytes();
    CHECK(world.refused(2, command) == Refusal::Kind::kStoreFull);
    CHECK(world.keyspace.held_bytes() == before);
    CHECK(world.keyspace.keys() == 0);
    CHECK(world.answers(1).empty());
    CHECK(world.check({"/a"}) == kOne);
    // Smaller commands are still carried out.
    CHECK(world.add(2, "/n", 1) == i64(1));
  }
}

TEST_CASE("a store takes as much as its bound, and again when something was deleted") {
  World world(4000);
  const std::string half(2000 - 2 - kEntry, 'v');
  world.set(1, "/a", half);
  world.set(1, "/b", half);
  CHECK(world.keyspace.held_bytes() == 4000);
  CHECK(world.refused(1, World::with(Op::kSet, "/c", {})) == Refusal::Kind::kStoreFull);
  CHECK(world.refused(1, World::list(Op::kWait, {"/c"})) == Refusal::Kind::kStoreFull);
  CHECK(world.get("/a") == text(half));
  CHECK(world.wait(1, {"/a", "/b"}) == kZero);  // existing keys can be read
  world.run(1, World::with(Op::kDeleteKey, "/a"));
  world.set(1, "/c", half);
  CHECK(world.check({"/b", "/c"}) == kZero);
}

TEST_CASE("keys and queues are bounded in number, though they are empty") {
  for (const Op op : {Op::kSet, Op::kQueuePush}) {
    World world(1 << 20);
    std::size_t made = 0;
    for (;; ++made) {
      Command command = World::with(op, std::to_string(made));
      if (!world.keyspace.apply(1, command, world)) break;
    }
    CHECK(made > 1000);
    CHECK(made < 10'000);
    CHECK(world.keyspace.held_bytes() <= 1 << 20);
  }
}

}  // namespace
}  // namespace elastic::store
