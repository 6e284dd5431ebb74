#include "rendezvous/store/keyspace.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "rendezvous/store/keyspace_test_support.h"
#include "rendezvous/store/limits.h"
#include "rendezvous/store/test_requests.h"

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
  Clients clients;
  const auto held = [&] { return clients.keyspace.held_bytes(); };
  CHECK(held() == 0);
  clients.set(1, "/k", "value");
  CHECK(held() == 7 + kEntry);
  clients.set(1, "/k", "v");
  CHECK(held() == 3 + kEntry);
  clients.compare_set(1, "/k", "v", "longer");
  CHECK(held() == 8 + kEntry);
  clients.compare_set(1, "/k", "other", "not stored");
  clients.compare_set(1, "/none", "x", "not stored");
  CHECK(held() == 8 + kEntry);
  clients.run(1, Clients::with(Op::kAppend, "/k", "more"));
  clients.run(1, Clients::with(Op::kAppend, "/a", "new"));
  CHECK(held() == 12 + 5 + 2 * kEntry);
  clients.add(1, "/n", 9);
  clients.add(1, "/n", 1);
  CHECK(held() == 12 + 5 + 4 + 3 * kEntry);
  clients.run(1, Clients::list(Op::kMultiSet, {"/n", "/m", "/m"}, {"", "1", "22"}));
  CHECK(held() == 12 + 5 + 2 + 4 + 4 * kEntry);
  for (const char* key : {"/k", "/a", "/n", "/m", "/none"}) clients.run(1, Clients::with(Op::kDeleteKey, key));
  CHECK(held() == 0);
}

TEST_CASE("queues are counted until their last item is taken") {
  Clients clients;
  clients.push(1, "/q", "item");
  clients.push(1, "/q", "");
  CHECK(clients.keyspace.held_bytes() == 2 + kQueue + 4 + 2 * kItem);
  clients.pop("/q");
  CHECK(clients.keyspace.held_bytes() == 2 + kQueue + kItem);
  clients.pop("/q");
  clients.pop("/q");
  CHECK(clients.keyspace.held_bytes() == 0);
}

TEST_CASE("waits are counted until they are answered, given up or dropped") {
  Clients clients;
  const auto held = [&] { return clients.keyspace.held_bytes(); };
  clients.wait(1, {"/a", "/bc", "/a"});
  const std::size_t two = 5 + 2 * (kEntry + kPlace) + kWait;
  CHECK(held() == two);
  clients.wait(2, {"/a"});
  CHECK(held() == two + kPlace + kWait);
  clients.keyspace.drop(2);
  CHECK(held() == two);
  clients.wait(1, {"/a"});  // it replaces the client's first wait
  CHECK(held() == 2 + kEntry + kPlace + kWait);
  clients.run(1, Clients::with(Op::kCancelWait, {}));
  CHECK(held() == 0);
  clients.wait(1, {"/a", "/b"});
  clients.push(9, "/a", "");  // one key of the wait is there, and the wait goes on
  CHECK(held() == 2 + kEntry + 2 * kPlace + kWait + 2 + kQueue + kItem);
  clients.pop("/a");
  clients.set(9, "/b", "");
  CHECK(held() == 2 + kEntry);
  CHECK(clients.answers(1) == kZero);
  CHECK(clients.barrier(1, "/x", 2).empty());
  CHECK(held() == 2 + kEntry + 3 + kEntry + 2 + kEntry + kPlace + kWait);
  CHECK(clients.barrier(2, "/x", 2) == kZero);
  CHECK(held() == 2 + kEntry + 3 + kEntry);
}

TEST_CASE("a request that could take the store beyond its bound is refused and changes nothing") {
  constexpr std::size_t kRoom = 4000;
  const std::string rest(kRoom - 2 - kEntry, 'v');
  const std::vector<Command> bringing = {
      Clients::with(Op::kSet, "/k", rest + "v"),
      Clients::with(Op::kCompareSet, "/k", rest + "v"),
      Clients::with(Op::kAppend, "/k", rest + "v"),
      Clients::number(Op::kAdd, std::string(kRoom - kEntry, 'k'), 1),
      Clients::number(Op::kBarrier, std::string(kRoom / 2, 'k'), 2),
      Clients::with(Op::kQueuePush, "/q", std::string(kRoom - 2 - kQueue - kItem + 1, 'v')),
      Clients::list(Op::kMultiSet, {"/a", "/b", "/a"}, {"", rest, rest}),
      Clients::list(Op::kWait, std::vector<std::string>(100, "/w")),
  };
  for (const Command& command : bringing) {
    CAPTURE(static_cast<int>(command.op));
    Clients clients(kRoom);
    CHECK(clients.wait(1, {"/a", "/k", "/q"}).empty());
    const std::size_t before = clients.keyspace.held_bytes();
    CHECK(clients.refused(2, command) == Refusal::Kind::kStoreFull);
    CHECK(clients.keyspace.held_bytes() == before);
    CHECK(clients.keyspace.keys() == 0);
    CHECK(clients.answers(1).empty());
    CHECK(clients.check({"/a"}) == kOne);
    // Smaller commands are still carried out.
    CHECK(clients.add(2, "/n", 1) == i64(1));
  }
}

TEST_CASE("a store takes as much as its bound, and again when something was deleted") {
  Clients clients(4000);
  const std::string half(2000 - 2 - kEntry, 'v');
  clients.set(1, "/a", half);
  clients.set(1, "/b", half);
  CHECK(clients.keyspace.held_bytes() == 4000);
  CHECK(clients.refused(1, Clients::with(Op::kSet, "/c", {})) == Refusal::Kind::kStoreFull);
  CHECK(clients.refused(1, Clients::list(Op::kWait, {"/c"})) == Refusal::Kind::kStoreFull);
  CHECK(clients.get("/a") == text(half));
  CHECK(clients.wait(1, {"/a", "/b"}) == kZero);  // existing keys can be read
  clients.run(1, Clients::with(Op::kDeleteKey, "/a"));
  clients.set(1, "/c", half);
  CHECK(clients.check({"/b", "/c"}) == kZero);
}

TEST_CASE("keys and queues are bounded in number, though they are empty") {
  for (const Op op : {Op::kSet, Op::kQueuePush}) {
    Clients clients(1 << 20);
    std::size_t made = 0;
    for (;; ++made) {
      Command command = Clients::with(op, std::to_string(made));
      if (!clients.keyspace.apply(1, command, clients)) break;
    }
    CHECK(made > 1000);
    CHECK(made < 10'000);
    CHECK(clients.keyspace.held_bytes() <= 1 << 20);
  }
}

}  // namespace
}  // namespace elastic::store
