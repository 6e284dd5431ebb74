#include "rendezvous/store/keyspace.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/store/keyspace_test_support.h"
#include "rendezvous/store/test_requests.h"

namespace elastic::store {
namespace {

using namespace test;

TEST_CASE("a wait that a client's own ADD or COMPARE_SET ends is answered before it, as by PyTorch's server") {
  World world;
  CHECK(world.wait(1, {"/k"}).empty());
  CHECK(world.add(1, "/k", 5) == kZero + i64(5));
  CHECK(world.wait(2, {"/new"}).empty());
  CHECK(world.compare_set(2, "/new", "", "value") == kZero + text("value"));
  CHECK(world.wait(3, {"/other"}).empty());
  CHECK(world.set(4, "/other", "old") == "");
  CHECK(world.answers(3) == kZero);
}

TEST_CASE("a wait is answered at once when all keys are there") {
  World world;
  world.set(1, "/a", "");
  world.push(1, "/q", "item");
  CHECK(world.wait(2, {"/a", "/q"}) == kZero);
  CHECK(world.wait(2, {}) == kZero);
  CHECK(world.keyspace.waiting_clients() == 0);
}

TEST_CASE("a wait is answered when its last key comes, in whatever way") {
  const std::vector<Command> kMakers = {World::with(Op::kSet, "/k", ""),       World::number(Op::kAdd, "/k", 0),
                                        World::with(Op::kAppend, "/k", ""),    World::with(Op::kCompareSet, "/k", ""),
                                        World::with(Op::kQueuePush, "/k", ""), World::list(Op::kMultiSet, {"/k"}, {""}),
                                        World::number(Op::kBarrier, "/k", 1)};
  for (const Command& maker : kMakers) {
    CAPTURE(static_cast<int>(maker.op));
    World world;
    CHECK(world.wait(1, {"/k", "/other"}).empty());
    world.set(2, "/other", "");
    CHECK(world.answers(1).empty());
    world.run(2, maker);
    CHECK(world.answers(1) == kZero);
    world.run(2, maker);
    CHECK(world.answers(1).empty());
    CHECK(world.keyspace.waiting_clients() == 0);
    CHECK(world.keyspace.awaited_keys() == 0);
  }
}

TEST_CASE("a key that is named twice in a wait is awaited once") {
  World world;
  CHECK(world.wait(1, {"/d", "/d"}).empty());
  world.set(2, "/d", "");
  CHECK(world.answers(1) == kZero);
  CHECK(world.wait(1, {"/x", "/y", "/x"}).empty());
  world.set(2, "/x", "");
  CHECK(world.answers(1).empty());
  world.set(2, "/y", "");
  CHECK(world.answers(1) == kZero);
  CHECK(world.wait(1, {"/q", "/q"}).empty());
  CHECK(world.wait(2, {"/q"}).empty());
  world.push(3, "/q", "item");
  CHECK(world.answers(1) == kZero);
  CHECK(world.answers(2).empty());
}

TEST_CASE("setting a key again does not stand for another key") {
  World world;
  CHECK(world.wait(1, {"/a", "/b"}).empty());
  world.set(2, "/a", "1");
  world.set(2, "/a", "2");
  CHECK(world.answers(1).empty());
  world.run(2, World::with(Op::kDeleteKey, "/a"));
  world.set(2, "/b", "");
  CHECK(world.answers(1) == kZero);  // a key that was set and deleted counts as set
}

TEST_CASE("a failed compare_set on a missing key wakes nobody") {
  World world;
  CHECK(world.wait(1, {"/k"}).empty());
  world.compare_set(2, "/k", "expected", "desired");
  CHECK(world.answers(1).empty());
  world.compare_set(2, "/k", "", "desired");
  CHECK(world.answers(1) == kZero);
}

TEST_CASE("a refused add wakes nobody") {
  World world;
  CHECK(world.barrier(1, "/b", 2).empty());
  world.refused(2, World::number(Op::kAdd, "/b", kMost));
  CHECK(world.answers(1).empty());
  world.add(2, "/b", 1);
  CHECK(world.answers(1) == kZero);
}

TEST_CASE("a client's later wait replaces its earlier one") {
  World world;
  CHECK(world.wait(1, {"/a"}).empty());
  CHECK(world.wait(1, {"/b"}).empty());
  world.set(2, "/b", "");
  CHECK(world.answers(1) == kZero);
  world.set(2, "/a", "");
  CHECK(world.answers(1).empty());
  CHECK(world.wait(1, {"/c"}).empty());
  CHECK(world.wait(1, {"/d"}).empty());
  world.set(2, "/c", "");
  CHECK(world.answers(1).empty());
}

TEST_CASE("a wait that is answered at once leaves a pending one pending") {
  World world;
  world.set(2, "/there", "");
  CHECK(world.wait(1, {"/a"}).empty());
  CHECK(world.wait(1, {"/there"}) == kZero);
  world.set(2, "/a", "");
  CHECK(world.answers(1) == kZero);
}

TEST_CASE("other commands of a waiting client are answered meanwhile") {
  World world;
  CHECK(world.wait(1, {"/a"}).empty());
  CHECK(world.add(1, "/n", 1) == i64(1));
  CHECK(world.set(1, "/a", "") == kZero);
}

TEST_CASE("cancel_wait always answers one byte, and forgets the wait") {
  World world;
  CHECK(world.run(1, World::with(Op::kCancelWait, {})) == kOne);
  CHECK(world.wait(1, {"/a", "/b"}).empty());
  CHECK(world.run(1, World::with(Op::kCancelWait, {})) == kOne);
  world.set(2, "/a", "");
  world.set(2, "/b", "");
  CHECK(world.answers(1).empty());
  CHECK(world.wait(1, {"/c"}).empty());
  world.set(2, "/c", "");
  CHECK(world.run(1, World::with(Op::kCancelWait, {})) == kZero + kOne);  // the key was set just before
}

TEST_CASE("a dropped client leaves nothing, and others wait on") {
  World world;
  CHECK(world.wait(1, {"/a", "/b", "/a"}).empty());
  CHECK(world.wait(2, {"/b"}).empty());
  CHECK(world.barrier(3, "/c", 2).empty());
  world.keyspace.drop(1);
  world.keyspace.drop(3);
  world.keyspace.drop(3);
  world.keyspace.drop(77);
  CHECK(world.keyspace.waiting_clients() == 1);
  CHECK(world.keyspace.awaited_keys() == 1);
  world.set(4, "/b", "");
  CHECK(world.answers(2) == kZero);
  CHECK(world.answers(1).empty());
}

TEST_CASE("queues give their items in order, with the length before each pop") {
  World world;
  CHECK(world.pop("/q") == i64(0));
  CHECK(world.push(1, "/q", "one").empty());
  CHECK(world.push(2, "/q", "").empty());
  CHECK(world.run(1, World::with(Op::kQueueLen, "/q")) == i64(2));
  CHECK(world.pop("/q") == i64(2) + text("one"));
  CHECK(world.pop("/q") == i64(1) + text(""));
  CHECK(world.pop("/q") == i64(0));
  CHECK(world.check({"/q"}) == kOne);
  CHECK(world.run(1, World::with(Op::kQueueLen, "/q")) == i64(0));
}

TEST_CASE("one push wakes one client, the one that has waited longest") {
  World world;
  for (const ClientId client : {1u, 2u, 3u}) CHECK(world.wait(client, {"/q"}).empty());
  world.keyspace.drop(1);
  world.push(9, "/q", "item");
  CHECK(world.answers(2) == kZero);
  CHECK(world.answers(3).empty());
  world.push(9, "/q", "item");
  CHECK(world.answers(3) == kZero);
}

TEST_CASE("a push that wakes one client does not count for another") {
  World world;
  CHECK(world.wait(1, {"/q", "/k"}).empty());
  CHECK(world.wait(2, {"/q"}).empty());
  world.push(9, "/q", "item");
  CHECK(world.answers(2) == kZero);
  world.pop("/q");
  world.set(9, "/k", "");
  CHECK(world.answers(1).empty());
  world.push(9, "/q", "item");
  CHECK(world.answers(1) == kZero);
}

TEST_CASE("a wait for two queues needs a push on each") {
  World world;
  CHECK(world.wait(1, {"/p", "/q"}).empty());
  world.push(9, "/q", "item");
  world.push(9, "/q", "item");
  CHECK(world.answers(1).empty());
  world.push(9, "/p", "item");
  CHECK(world.answers(1) == kZero);
}

TEST_CASE("an item that nobody takes is seen by all who wait for something else too") {
  World world;
  CHECK(world.wait(1, {"/q", "/a"}).empty());
  CHECK(world.wait(2, {"/q", "/b"}).empty());
  world.push(9, "/q", "item");
  world.keyspace.drop(1);
  world.set(9, "/b", "");
  CHECK(world.answers(2) == kZero);
}

TEST_CASE("a barrier answers all its callers when the last one comes, and later ones at once") {
  World world;
  CHECK(world.barrier(1, "/b", 3).empty());
  CHECK(world.barrier(2, "/b", 3).empty());
  CHECK(world.get("/b") == text("2"));
  CHECK(world.barrier(3, "/b", 3) == kZero);
  CHECK(world.answers(1) == kZero);
  CHECK(world.answers(2) == kZero);
  CHECK(world.barrier(4, "/b", 3) == kZero);
  CHECK(world.get("/b") == text("4"));
  CHECK(world.keyspace.waiting_clients() == 0);
}

TEST_CASE("a barrier for one or fewer is passed at once") {
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{0}, std::int64_t{-5}, kLeast}) {
    World world;
    CHECK(world.barrier(1, "/b", size) == kZero);
  }
}

TEST_CASE("a wait older than a barrier ends with it, though its key was there before") {
  World world;
  CHECK(world.wait(1, {"/b"}).empty());
  CHECK(world.barrier(2, "/b", 2).empty());
  CHECK(world.answers(1).empty());
  CHECK(world.wait(3, {"/b"}) == kZero);
  CHECK(world.barrier(4, "/b", 2) == kZero);
  CHECK(world.answers(1) == kZero);
  CHECK(world.answers(2) == kZero);
}

TEST_CASE("a barrier's count outlives its callers") {
  World world;
  CHECK(world.barrier(1, "/b", 2).empty());
  CHECK(world.run(1, World::with(Op::kCancelWait, {})) == kOne);
  CHECK(world.wait(1, {"/other"}).empty());
  CHECK(world.barrier(2, "/b", 2) == kZero);
  CHECK(world.answers(1).empty());
}

TEST_CASE("a set releases the callers of a barrier, a queue push does not") {
  World world;
  CHECK(world.barrier(1, "/b", 3).empty());
  world.push(9, "/b", "item");
  CHECK(world.answers(1).empty());
  world.set(9, "/b", "x");
  CHECK(world.answers(1) == kZero);
}

TEST_CASE("one set wakes thousands, and as many that vanish leave nothing") {
  World world;
  constexpr ClientId kClients = 4000;
  std::vector<std::string> keys(100);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = "/" + std::to_string(i);
  for (ClientId client = 1; client <= kClients; ++client) world.wait(client, keys);
  for (ClientId client = 1; client <= kClients; client += 2) world.keyspace.drop(client);
  for (const std::string& key : keys) world.set(9999, key, "");
  for (ClientId client = 1; client <= kClients; ++client) {
    CHECK(world.answers(client) == (client % 2 == 1 ? "" : kZero));
  }
  CHECK(world.keyspace.waiting_clients() == 0);
  CHECK(world.keyspace.awaited_keys() == 0);
}

}  // namespace
}  // namespace elastic::store
