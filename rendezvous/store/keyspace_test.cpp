#include "rendezvous/store/keyspace.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store/test_requests.h"
#include "src/base/limits.h"

namespace elastic::store {
namespace {

using test::i64;
using test::text;

const std::string kZero(1, '\0');
const std::string kOne(1, '\1');
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// A keyspace with clients that remember what they were answered.
class World final : public Outbox {
 public:
  explicit World(std::size_t most_bytes = limits::kStoreBytes) : keyspace(most_bytes) {}

  std::string& replies_to(ClientId client) override { return replies_[client]; }

  // What the client was answered since the last look.
  std::string answers(ClientId client) { return std::exchange(replies_[client], {}); }

  // Carries out a command that must not be refused; returns what its client was answered.
  std::string run(ClientId client, Command command) {
    const auto done = keyspace.apply(client, command, *this);
    CHECK(done.has_value());
    return answers(client);
  }
  Refusal::Kind refused(ClientId client, Command command) {
    const auto done = keyspace.apply(client, command, *this);
    REQUIRE_FALSE(done.has_value());
    CHECK(answers(client).empty());
    return done.error().kind;
  }

  std::string set(ClientId client, const std::string& key, const std::string& value) {
    return run(client, with(Op::kSet, key, value));
  }
  std::string get(const std::string& key) { return run(kReader, with(Op::kGet, key)); }
  std::string add(ClientId client, const std::string& key, std::int64_t delta) {
    return run(client, number(Op::kAdd, key, delta));
  }
  std::string compare_set(ClientId client, const std::string& key, const std::string& expected,
                          const std::string& desired) {
    Command command = with(Op::kCompareSet, key, desired);
    command.expected = expected;
    return run(client, command);
  }
  std::string wait(ClientId client, const std::vector<std::string>& keys) {
    return run(client, list(Op::kWait, keys));
  }
  std::string check(const std::vector<std::string>& keys) {
    return run(kReader, list(Op::kCheck, keys));
  }
  std::string barrier(ClientId client, const std::string& key, std::int64_t size) {
    return run(client, number(Op::kBarrier, key, size));
  }
  std::string push(ClientId client, const std::string& key, const std::string& item) {
    return run(client, with(Op::kQueuePush, key, item));
  }
  std::string pop(const std::string& key) { return run(kReader, with(Op::kQueuePop, key)); }

  static Command with(Op op, const std::string& key, const std::string& value = {}) {
    Command command;
    command.op = op;
    command.key = key;
    command.value = value;
    return command;
  }
  static Command number(Op op, const std::string& key, std::int64_t number) {
    Command command = with(op, key);
    command.number = number;
    return command;
  }
  static Command list(Op op, const std::vector<std::string>& keys,
                      const std::vector<std::string>& values = {}) {
    Command command = with(op, {});
    command.keys = keys;
    command.values = values;
    return command;
  }

  Keyspace keyspace;

 private:
  static constexpr ClientId kReader = 1000;  // asks for what needs no client of its own
  std::map<ClientId, std::string> replies_;
};

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

TEST_CASE("what was set is what get answers, bytes of any kind and none") {
  World world;
  const std::string bytes("a\0\xFF", 3);
  CHECK(world.set(1, "/k", bytes).empty());
  CHECK(world.get("/k") == text(bytes));
  world.set(2, "/k", "");
  CHECK(world.get("/k") == text(""));
  CHECK(world.get("/missing") == text(""));
  world.set(1, "", "empty key");
  CHECK(world.get("") == text("empty key"));
}

TEST_CASE("compare_set stores only over the value it expects and answers what is there") {
  World world;
  CHECK(world.compare_set(1, "/k", "", "first") == text("first"));
  CHECK(world.compare_set(1, "/k", "wrong", "second") == text("first"));
  CHECK(world.compare_set(1, "/k", "first", "second") == text("second"));
  CHECK(world.get("/k") == text("second"));
}

TEST_CASE("compare_set on a missing key answers what was expected, though nothing is stored") {
  World world;
  CHECK(world.compare_set(1, "/k", "expected", "desired") == text("expected"));
  CHECK(world.check({"/k"}) == kOne);
  CHECK(world.compare_set(1, "/k", "", "") == text(""));
  CHECK(world.check({"/k"}) == kZero);
}

TEST_CASE("a value that is replaced leaves its memory neither with the key nor with the command") {
  World world;
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = in_use();
  for (const std::string& by : {std::string("short"), std::string(7000, 'm')}) {
    world.set(1, "/k", std::string(8 * 1024 * 1024, 'v'));
    Command command = World::with(Op::kSet, "/k", by);
    REQUIRE(world.keyspace.apply(1, command, world).has_value());
    CHECK(command.value.capacity() <= by.size() + 16);
    CHECK(in_use() < before + 1024 * 1024);
    CHECK(world.get("/k") == text(by));
  }
}

TEST_CASE("add counts from nothing, and its value reads as decimal text") {
  World world;
  CHECK(world.add(1, "/n", 0) == i64(0));
  CHECK(world.get("/n") == text("0"));
  CHECK(world.add(1, "/n", 41) == i64(41));
  CHECK(world.add(2, "/n", -50) == i64(-9));
  CHECK(world.get("/n") == text("-9"));
}

TEST_CASE("add reads an existing value as std::stoll does") {
  const std::map<std::string, std::int64_t> kReadable = {{" 12abc", 13},
                                                         {"12.9", 13},
                                                         {"0x10", 1},
                                                         {"+5", 6},
                                                         {"-0", 1},
                                                         {" \t\n\v\f\r7", 8},
                                                         {"007", 8},
                                                         {std::string("5\0x", 3), 6},
                                                         {"-9223372036854775808", kLeast + 1}};
  for (const auto& [value, sum] : kReadable) {
    CAPTURE(value);
    World world;
    world.set(1, "/n", value);
    CHECK(world.add(1, "/n", 1) == i64(sum));
    CHECK(world.get("/n") == text(std::to_string(sum)));
  }
}

TEST_CASE("add to what is no number is refused and changes nothing") {
  for (const std::string& value :
       {std::string(), std::string("abc"), std::string("-"), std::string("+"), std::string("--1"),
        std::string("+-1"), std::string("   "), std::string("9223372036854775808"),
        std::string("\0001", 2)}) {
    CAPTURE(value);
    World world;
    world.set(1, "/n", value);
    CHECK(world.refused(1, World::number(Op::kAdd, "/n", 1)) == Refusal::Kind::kNotANumber);
    CHECK(world.refused(1, World::number(Op::kBarrier, "/n", 1)) == Refusal::Kind::kNotANumber);
    CHECK(world.get("/n") == text(value));
  }
}

TEST_CASE("a sum beyond 64 bits is refused, the value unchanged") {
  World world;
  CHECK(world.add(1, "/n", kMost) == i64(kMost));
  CHECK(world.refused(1, World::number(Op::kAdd, "/n", 1)) == Refusal::Kind::kOutOfRange);
  CHECK(world.refused(1, World::number(Op::kBarrier, "/n", 1)) == Refusal::Kind::kOutOfRange);
  CHECK(world.get("/n") == text(std::to_string(kMost)));
  world.set(1, "/n", std::to_string(kLeast));
  CHECK(world.refused(1, World::number(Op::kAdd, "/n", -1)) == Refusal::Kind::kOutOfRange);
}

TEST_CASE("check tells whether all keys are there") {
  World world;
  world.set(1, "/a", "1");
  CHECK(world.check({"/a"}) == kZero);
  CHECK(world.check({"/a", "/b"}) == kOne);
  CHECK(world.check({}) == kZero);
  world.push(1, "/b", "item");
  CHECK(world.check({"/a", "/b"}) == kZero);
  world.pop("/b");
  CHECK(world.check({"/b"}) == kOne);
}

TEST_CASE("delete_key removes a value once, and never a queue") {
  World world;
  world.set(1, "/k", "1");
  CHECK(world.run(1, World::with(Op::kDeleteKey, "/k")) == i64(1));
  CHECK(world.run(1, World::with(Op::kDeleteKey, "/k")) == i64(0));
  world.push(1, "/q", "item");
  CHECK(world.run(1, World::with(Op::kDeleteKey, "/q")) == i64(0));
  CHECK(world.run(1, World::with(Op::kQueueLen, "/q")) == i64(1));
}

TEST_CASE("append makes a value or lengthens it") {
  World world;
  CHECK(world.run(1, World::with(Op::kAppend, "/k", "ab")).empty());
  CHECK(world.run(2, World::with(Op::kAppend, "/k", "cd")).empty());
  CHECK(world.get("/k") == text("abcd"));
}

TEST_CASE("append stops where a get could no longer be answered") {
  World world;
  const std::string eighth(limits::kStorePayloadBytes, 'v');
  for (int i = 0; i < 7; ++i) world.run(1, World::with(Op::kAppend, "/k", eighth));
  const Command rest =
      World::with(Op::kAppend, "/k", std::string(limits::kStorePayloadBytes - 8, 'v'));
  world.run(1, rest);
  CHECK(world.refused(1, World::with(Op::kAppend, "/k", "v")) == Refusal::Kind::kValueTooLong);
  CHECK(world.get("/k").size() == limits::kStoreUnreadReplyBytes);
}

TEST_CASE("multi_set sets all pairs and multi_get answers in the order asked") {
  World world;
  CHECK(world.run(1, World::list(Op::kMultiSet, {"/a", "/b", "/a"}, {"1", "", "2"})).empty());
  CHECK(world.run(1, World::list(Op::kMultiGet, {"/b", "/a", "/none"})) ==
        text("") + text("2") + text(""));
  CHECK(world.run(1, World::list(Op::kMultiGet, {})).empty());
  CHECK(world.run(1, World::list(Op::kMultiSet, {})).empty());
}

TEST_CASE("a multi_get whose answer would have no bound is refused") {
  World world;
  world.set(1, "/k", std::string(limits::kStorePayloadBytes, 'v'));
  const Command eight = World::list(Op::kMultiGet, std::vector<std::string>(8, "/k"));
  CHECK(world.refused(1, eight) == Refusal::Kind::kReplyTooLong);
}

TEST_CASE("num_keys and list_keys tell of values, not of queues") {
  World world;
  CHECK(world.run(1, World::with(Op::kGetNumKeys, {})) == i64(0));
  CHECK(world.run(1, World::with(Op::kListKeys, {})) == i64(0));
  world.set(1, "init/", "1");
  world.push(1, "/q", "item");
  CHECK(world.run(1, World::with(Op::kGetNumKeys, {})) == i64(1));
  CHECK(world.run(1, World::with(Op::kListKeys, {})) == i64(1) + text("init/"));
}

TEST_CASE("ping answers its nonce") {
  World world;
  CHECK(world.run(1, World::number(Op::kPing, {}, 0xF0003039)) ==
        std::string("\x39\x30\x00\xF0", 4));
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
  const std::vector<Command> kMakers = {
      World::with(Op::kSet, "/k", ""),        World::number(Op::kAdd, "/k", 0),
      World::with(Op::kAppend, "/k", ""),     World::with(Op::kCompareSet, "/k", ""),
      World::with(Op::kQueuePush, "/k", ""),  World::list(Op::kMultiSet, {"/k"}, {""}),
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
  CHECK(world.answers(1) == kZero);  // a key that came and went has come
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
  CHECK(world.run(1, World::with(Op::kCancelWait, {})) == kZero + kOne);  // it came just before
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

// What the limits count for each, beside its text.
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
  world.wait(1, {"/a"});  // replaces
  CHECK(held() == 2 + kEntry + kPlace + kWait);
  world.run(1, World::with(Op::kCancelWait, {}));
  CHECK(held() == 0);
  world.wait(1, {"/a", "/b"});
  world.push(9, "/a", "");  // counts for the wait, which goes on
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
    // Smaller ones are carried out still.
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
  CHECK(world.wait(1, {"/a", "/b"}) == kZero);  // what is there can be fetched
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
