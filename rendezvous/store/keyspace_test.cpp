#include "rendezvous/store/keyspace.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store/keyspace_test_support.h"
#include "rendezvous/store/test_requests.h"
#include "src/base/limits.h"

namespace elastic::store {
namespace {

using namespace test;

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

TEST_CASE("a value that has grown by short pieces takes about as much memory as it has bytes") {
  World world;
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  constexpr std::size_t kPieces = 256 * 1024;
  world.set(1, "/k", "");
  const std::size_t before = in_use();
  for (std::size_t i = 0; i < kPieces; ++i) world.run(1, World::with(Op::kAppend, "/k", std::string(16, 'p')));
  CHECK(in_use() < before + kPieces * 16 * 5 / 4);
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

TEST_CASE("add reads the number at the beginning of a long value, however many blanks and digits that has") {
  World world;
  const auto lengthen = [&](const std::string& key, const std::string& text) {
    world.run(1, World::with(Op::kAppend, key, text));
  };
  world.set(1, "/long", "4 " + std::string(5000, 'x'));
  lengthen("/long", std::string(5000, '9'));
  CHECK(world.add(1, "/long", 1) == i64(5));
  world.set(1, "/blanks", std::string(5000, ' '));
  lengthen("/blanks", std::string(5000, '0') + "7");
  CHECK(world.add(1, "/blanks", 1) == i64(8));
  world.set(1, "/many", std::string(5000, '9'));
  CHECK(world.refused(1, World::number(Op::kAdd, "/many", 1)) == Refusal::Kind::kNotANumber);
}

TEST_CASE("add to what is no number is refused and changes nothing") {
  for (const std::string& value :
       {std::string(), std::string("abc"), std::string("-"), std::string("+"), std::string("--1"), std::string("+-1"),
        std::string("   "), std::string("9223372036854775808"), std::string("\0001", 2)}) {
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

TEST_CASE("a value grows by append as far as the store has room, and its pieces are one value") {
  World world;
  const std::string part(limits::kStorePayloadBytes, 'v');
  for (int i = 0; i < 9; ++i) world.run(1, World::with(Op::kAppend, "/k", part));
  for (const char* end : {"e", "n", "d"}) world.run(1, World::with(Op::kAppend, "/k", end));
  const std::string value = world.get("/k");
  CHECK(value.size() == 8 + 9 * part.size() + 3);
  CHECK(value.ends_with("vend"));
  world.run(1, World::with(Op::kAppend, "/n", std::string(2000, ' ')));
  world.run(1, World::with(Op::kAppend, "/n", "12"));
  CHECK(world.compare_set(1, "/n", std::string(2000, ' ') + "13", "no") == text(std::string(2000, ' ') + "12"));
  CHECK(world.add(1, "/n", 1) == i64(13));
  world.run(1, World::with(Op::kAppend, "/n", std::string(1500, '.')));
  CHECK(world.compare_set(1, "/n", "13" + std::string(1500, '.'), "yes") == text("yes"));
}

TEST_CASE("multi_set sets all pairs and multi_get answers in the order asked") {
  World world;
  CHECK(world.run(1, World::list(Op::kMultiSet, {"/a", "/b", "/a"}, {"1", "", "2"})).empty());
  CHECK(world.run(1, World::list(Op::kMultiGet, {"/b", "/a", "/none"})) == text("") + text("2") + text(""));
  CHECK(world.run(1, World::list(Op::kMultiGet, {})).empty());
  CHECK(world.run(1, World::list(Op::kMultiSet, {})).empty());
}

TEST_CASE("an answer of any length is given, and takes no memory beside that of the store") {
  World world;
  const std::string value(limits::kStorePayloadBytes, 'v');
  world.set(1, "/k", value);
  Command many = World::list(Op::kMultiGet, std::vector<std::string>(100, "/k"));
  REQUIRE(world.keyspace.apply(1, many, world));
  CHECK(world.replies_to(1).size() == 100 * (8 + value.size()));
  CHECK(world.keyspace.loose()->count < 100 * 256);
  const Replies::Slice slice = world.replies_to(1).take(2 * (8 + value.size()), world.keyspace.loose());
  CHECK(slice.pieces == std::vector<std::string_view>{i64(1 << 23), value, i64(1 << 23), value});
}

TEST_CASE("an answer is what was there when it was asked for, whatever becomes of the value") {
  World world;
  const std::string old(100'000, 'o');
  world.set(1, "/set", old);
  world.set(1, "/deleted", old);
  world.set(1, "/longer", old);
  world.push(1, "/popped", old);
  const auto ask = [&](Command command) { REQUIRE(world.keyspace.apply(1, command, world)); };
  ask(World::list(Op::kMultiGet, {"/set", "/deleted", "/longer"}));
  ask(World::with(Op::kQueuePop, "/popped"));
  CHECK(world.keyspace.loose()->count > old.size());  // the popped item
  CHECK(world.keyspace.loose()->count < 2 * old.size());
  ask(World::with(Op::kSet, "/set", std::string(100'000, 'n')));
  ask(World::with(Op::kDeleteKey, "/deleted"));
  ask(World::with(Op::kAppend, "/longer", std::string(100'000, 'n')));
  CHECK(world.keyspace.loose()->count > 3 * old.size());
  CHECK(world.keyspace.loose()->count < 4 * old.size());
  CHECK(world.answers(1) == text(old) + text(old) + text(old) + i64(1) + text(old) + i64(1));
  CHECK(world.keyspace.loose()->count == 0);
  CHECK(world.get("/longer") == text(old + std::string(100'000, 'n')));
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
  CHECK(world.run(1, World::number(Op::kPing, {}, 0xF0003039)) == std::string("\x39\x30\x00\xF0", 4));
}

}  // namespace
}  // namespace elastic::store
