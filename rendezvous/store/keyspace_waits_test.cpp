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
  Clients clients;
  CHECK(clients.wait(1, {"/k"}).empty());
  CHECK(clients.add(1, "/k", 5) == kZero + i64(5));
  CHECK(clients.wait(2, {"/new"}).empty());
  CHECK(clients.compare_set(2, "/new", "", "value") == kZero + text("value"));
  CHECK(clients.wait(3, {"/other"}).empty());
  CHECK(clients.set(4, "/other", "old") == "");
  CHECK(clients.answers(3) == kZero);
}

TEST_CASE("a wait is answered at once when all keys are there") {
  Clients clients;
  clients.set(1, "/a", "");
  clients.push(1, "/q", "item");
  CHECK(clients.wait(2, {"/a", "/q"}) == kZero);
  CHECK(clients.wait(2, {}) == kZero);
  CHECK(clients.held_without({"/a", "/q"}) == 0);
}

TEST_CASE("a wait is answered when its last key comes, in whatever way") {
  const std::vector<Command> kMakers = {
      Clients::with(Op::kSet, "/k", ""),       Clients::number(Op::kAdd, "/k", 0),
      Clients::with(Op::kAppend, "/k", ""),    Clients::with(Op::kCompareSet, "/k", ""),
      Clients::with(Op::kQueuePush, "/k", ""), Clients::list(Op::kMultiSet, {"/k"}, {""}),
      Clients::number(Op::kBarrier, "/k", 1)};
  for (const Command& maker : kMakers) {
    CAPTURE(static_cast<int>(maker.op));
    Clients clients;
    CHECK(clients.wait(1, {"/k", "/other"}).empty());
    clients.set(2, "/other", "");
    CHECK(clients.answers(1).empty());
    clients.run(2, maker);
    CHECK(clients.answers(1) == kZero);
    clients.run(2, maker);
    CHECK(clients.answers(1).empty());
    CHECK(clients.held_without({"/k", "/other"}) == 0);
  }
}

TEST_CASE("a key that is named twice in a wait is awaited once") {
  Clients clients;
  CHECK(clients.wait(1, {"/d", "/d"}).empty());
  clients.set(2, "/d", "");
  CHECK(clients.answers(1) == kZero);
  CHECK(clients.wait(1, {"/x", "/y", "/x"}).empty());
  clients.set(2, "/x", "");
  CHECK(clients.answers(1).empty());
  clients.set(2, "/y", "");
  CHECK(clients.answers(1) == kZero);
  CHECK(clients.wait(1, {"/q", "/q"}).empty());
  CHECK(clients.wait(2, {"/q"}).empty());
  clients.push(3, "/q", "item");
  CHECK(clients.answers(1) == kZero);
  CHECK(clients.answers(2).empty());
}

TEST_CASE("setting a key again does not stand for another key") {
  Clients clients;
  CHECK(clients.wait(1, {"/a", "/b"}).empty());
  clients.set(2, "/a", "1");
  clients.set(2, "/a", "2");
  CHECK(clients.answers(1).empty());
  clients.run(2, Clients::with(Op::kDeleteKey, "/a"));
  clients.set(2, "/b", "");
  CHECK(clients.answers(1) == kZero);  // a key that was set and deleted counts as set
}

TEST_CASE("a failed compare_set on a missing key wakes nobody") {
  Clients clients;
  CHECK(clients.wait(1, {"/k"}).empty());
  clients.compare_set(2, "/k", "expected", "desired");
  CHECK(clients.answers(1).empty());
  clients.compare_set(2, "/k", "", "desired");
  CHECK(clients.answers(1) == kZero);
}

TEST_CASE("a refused add wakes nobody") {
  Clients clients;
  CHECK(clients.barrier(1, "/b", 2).empty());
  clients.refused(2, Clients::number(Op::kAdd, "/b", kMost));
  CHECK(clients.answers(1).empty());
  clients.add(2, "/b", 1);
  CHECK(clients.answers(1) == kZero);
}

TEST_CASE("a client's later wait replaces its earlier one") {
  Clients clients;
  CHECK(clients.wait(1, {"/a"}).empty());
  CHECK(clients.wait(1, {"/b"}).empty());
  clients.set(2, "/b", "");
  CHECK(clients.answers(1) == kZero);
  clients.set(2, "/a", "");
  CHECK(clients.answers(1).empty());
  CHECK(clients.wait(1, {"/c"}).empty());
  CHECK(clients.wait(1, {"/d"}).empty());
  clients.set(2, "/c", "");
  CHECK(clients.answers(1).empty());
}

TEST_CASE("a wait that is answered at once leaves a pending one pending") {
  Clients clients;
  clients.set(2, "/there", "");
  CHECK(clients.wait(1, {"/a"}).empty());
  CHECK(clients.wait(1, {"/there"}) == kZero);
  clients.set(2, "/a", "");
  CHECK(clients.answers(1) == kZero);
}

TEST_CASE("other commands of a waiting client are answered meanwhile") {
  Clients clients;
  CHECK(clients.wait(1, {"/a"}).empty());
  CHECK(clients.add(1, "/n", 1) == i64(1));
  CHECK(clients.set(1, "/a", "") == kZero);
}

TEST_CASE("cancel_wait always answers one byte, and forgets the wait") {
  Clients clients;
  CHECK(clients.run(1, Clients::with(Op::kCancelWait, {})) == kOne);
  CHECK(clients.wait(1, {"/a", "/b"}).empty());
  CHECK(clients.run(1, Clients::with(Op::kCancelWait, {})) == kOne);
  clients.set(2, "/a", "");
  clients.set(2, "/b", "");
  CHECK(clients.answers(1).empty());
  CHECK(clients.wait(1, {"/c"}).empty());
  clients.set(2, "/c", "");
  CHECK(clients.run(1, Clients::with(Op::kCancelWait, {})) == kZero + kOne);  // the key was set just before
}

TEST_CASE("a dropped client leaves nothing, and others wait on") {
  Clients clients;
  CHECK(clients.wait(1, {"/a", "/b", "/a"}).empty());
  CHECK(clients.wait(2, {"/b"}).empty());
  CHECK(clients.barrier(3, "/c", 2).empty());
  clients.keyspace.drop(1);
  clients.keyspace.drop(3);
  clients.keyspace.drop(3);
  clients.keyspace.drop(77);
  clients.keyspace.each_wait([](ClientId client, std::string_view key) {
    CHECK(client == 2);
    CHECK(key == "/b");
  });
  clients.set(4, "/b", "");
  CHECK(clients.answers(2) == kZero);
  CHECK(clients.answers(1).empty());
  CHECK(clients.held_without({"/b", "/c"}) == 0);
}

TEST_CASE("queues give their items in order, with the length before each pop") {
  Clients clients;
  CHECK(clients.pop("/q") == i64(0));
  CHECK(clients.push(1, "/q", "one").empty());
  CHECK(clients.push(2, "/q", "").empty());
  CHECK(clients.run(1, Clients::with(Op::kQueueLen, "/q")) == i64(2));
  CHECK(clients.pop("/q") == i64(2) + text("one"));
  CHECK(clients.pop("/q") == i64(1) + text(""));
  CHECK(clients.pop("/q") == i64(0));
  CHECK(clients.check({"/q"}) == kOne);
  CHECK(clients.run(1, Clients::with(Op::kQueueLen, "/q")) == i64(0));
}

TEST_CASE("one push wakes one client, the one that has waited longest") {
  Clients clients;
  for (const ClientId client : {1u, 2u, 3u}) CHECK(clients.wait(client, {"/q"}).empty());
  clients.keyspace.drop(1);
  clients.push(9, "/q", "item");
  CHECK(clients.answers(2) == kZero);
  CHECK(clients.answers(3).empty());
  clients.push(9, "/q", "item");
  CHECK(clients.answers(3) == kZero);
}

TEST_CASE("a push that wakes one client does not count for another") {
  Clients clients;
  CHECK(clients.wait(1, {"/q", "/k"}).empty());
  CHECK(clients.wait(2, {"/q"}).empty());
  clients.push(9, "/q", "item");
  CHECK(clients.answers(2) == kZero);
  clients.pop("/q");
  clients.set(9, "/k", "");
  CHECK(clients.answers(1).empty());
  clients.push(9, "/q", "item");
  CHECK(clients.answers(1) == kZero);
}

TEST_CASE("a wait for two queues needs a push on each") {
  Clients clients;
  CHECK(clients.wait(1, {"/p", "/q"}).empty());
  clients.push(9, "/q", "item");
  clients.push(9, "/q", "item");
  CHECK(clients.answers(1).empty());
  clients.push(9, "/p", "item");
  CHECK(clients.answers(1) == kZero);
}

TEST_CASE("an item that nobody takes is seen by all who wait for something else too") {
  Clients clients;
  CHECK(clients.wait(1, {"/q", "/a"}).empty());
  CHECK(clients.wait(2, {"/q", "/b"}).empty());
  clients.push(9, "/q", "item");
  clients.keyspace.drop(1);
  clients.set(9, "/b", "");
  CHECK(clients.answers(2) == kZero);
}

TEST_CASE("a barrier answers all its callers when the last one comes, and later ones at once") {
  Clients clients;
  CHECK(clients.barrier(1, "/b", 3).empty());
  CHECK(clients.barrier(2, "/b", 3).empty());
  CHECK(clients.get("/b") == text("2"));
  CHECK(clients.barrier(3, "/b", 3) == kZero);
  CHECK(clients.answers(1) == kZero);
  CHECK(clients.answers(2) == kZero);
  CHECK(clients.barrier(4, "/b", 3) == kZero);
  CHECK(clients.get("/b") == text("4"));
  CHECK(clients.held_without({"/b"}) == 0);
}

TEST_CASE("a barrier for one or fewer is passed at once") {
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{0}, std::int64_t{-5}, kLeast}) {
    Clients clients;
    CHECK(clients.barrier(1, "/b", size) == kZero);
  }
}

TEST_CASE("a wait older than a barrier ends with it, though its key was there before") {
  Clients clients;
  CHECK(clients.wait(1, {"/b"}).empty());
  CHECK(clients.barrier(2, "/b", 2).empty());
  CHECK(clients.answers(1).empty());
  CHECK(clients.wait(3, {"/b"}) == kZero);
  CHECK(clients.barrier(4, "/b", 2) == kZero);
  CHECK(clients.answers(1) == kZero);
  CHECK(clients.answers(2) == kZero);
}

TEST_CASE("a barrier's count outlives its callers") {
  Clients clients;
  CHECK(clients.barrier(1, "/b", 2).empty());
  CHECK(clients.run(1, Clients::with(Op::kCancelWait, {})) == kOne);
  CHECK(clients.wait(1, {"/other"}).empty());
  CHECK(clients.barrier(2, "/b", 2) == kZero);
  CHECK(clients.answers(1).empty());
}

TEST_CASE("a set releases the callers of a barrier, a queue push does not") {
  Clients clients;
  CHECK(clients.barrier(1, "/b", 3).empty());
  clients.push(9, "/b", "item");
  CHECK(clients.answers(1).empty());
  clients.set(9, "/b", "x");
  CHECK(clients.answers(1) == kZero);
}

TEST_CASE("one set wakes thousands, and as many that vanish leave nothing") {
  Clients clients;
  constexpr ClientId kClients = 4000;
  std::vector<std::string> keys(100);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = "/" + std::to_string(i);
  for (ClientId client = 1; client <= kClients; ++client) clients.wait(client, keys);
  for (ClientId client = 1; client <= kClients; client += 2) clients.keyspace.drop(client);
  for (const std::string& key : keys) clients.set(9999, key, "");
  for (ClientId client = 1; client <= kClients; ++client) {
    CHECK(clients.answers(client) == (client % 2 == 1 ? "" : kZero));
  }
  CHECK(clients.held_without(keys) == 0);
}

}  // namespace
}  // namespace elastic::store
