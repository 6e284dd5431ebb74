#include "rendezvous/store/keyspace.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store/keyspace_test_support.h"
#include "rendezvous/store/limits.h"
#include "rendezvous/store/test_requests.h"

namespace elastic::store {
namespace {

using namespace test;

TEST_CASE("what was set is what get answers, bytes of any kind and none") {
  Clients clients;
  const std::string bytes("a\0\xFF", 3);
  CHECK(clients.set(1, "/k", bytes).empty());
  CHECK(clients.get("/k") == text(bytes));
  clients.set(2, "/k", "");
  CHECK(clients.get("/k") == text(""));
  CHECK(clients.get("/missing") == text(""));
  clients.set(1, "", "empty key");
  CHECK(clients.get("") == text("empty key"));
}

TEST_CASE("compare_set stores only over the value it expects and answers what is there") {
  Clients clients;
  CHECK(clients.compare_set(1, "/k", "", "first") == text("first"));
  CHECK(clients.compare_set(1, "/k", "wrong", "second") == text("first"));
  CHECK(clients.compare_set(1, "/k", "first", "second") == text("second"));
  CHECK(clients.get("/k") == text("second"));
}

TEST_CASE("compare_set on a missing key answers what was expected, though nothing is stored") {
  Clients clients;
  CHECK(clients.compare_set(1, "/k", "expected", "desired") == text("expected"));
  CHECK(clients.check({"/k"}) == kOne);
  CHECK(clients.compare_set(1, "/k", "", "") == text(""));
  CHECK(clients.check({"/k"}) == kZero);
}

TEST_CASE("a value that is replaced leaves its memory neither with the key nor with the command") {
  Clients clients;
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = in_use();
  for (const std::string& by : {std::string("short"), std::string(7000, 'm')}) {
    clients.set(1, "/k", std::string(8 * 1024 * 1024, 'v'));
    Command command = Clients::with(Op::kSet, "/k", by);
    REQUIRE(clients.keyspace.apply(1, command, clients).has_value());
    CHECK(command.value.capacity() <= by.size() + 16);
    CHECK(in_use() < before + 1024 * 1024);
    CHECK(clients.get("/k") == text(by));
  }
}

TEST_CASE("a value that has grown by short pieces takes about as much memory as it has bytes") {
  Clients clients;
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  constexpr std::size_t kPieces = 256 * 1024;
  clients.set(1, "/k", "");
  const std::size_t before = in_use();
  for (std::size_t i = 0; i < kPieces; ++i) clients.run(1, Clients::with(Op::kAppend, "/k", std::string(16, 'p')));
  CHECK(in_use() < before + kPieces * 16 * 5 / 4);
}

TEST_CASE("add counts from nothing, and its value reads as decimal text") {
  Clients clients;
  CHECK(clients.add(1, "/n", 0) == i64(0));
  CHECK(clients.get("/n") == text("0"));
  CHECK(clients.add(1, "/n", 41) == i64(41));
  CHECK(clients.add(2, "/n", -50) == i64(-9));
  CHECK(clients.get("/n") == text("-9"));
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
    Clients clients;
    clients.set(1, "/n", value);
    CHECK(clients.add(1, "/n", 1) == i64(sum));
    CHECK(clients.get("/n") == text(std::to_string(sum)));
  }
}

TEST_CASE("add reads the number at the beginning of a long value, however many blanks and digits that has") {
  Clients clients;
  const auto lengthen = [&](const std::string& key, const std::string& text) {
    clients.run(1, Clients::with(Op::kAppend, key, text));
  };
  clients.set(1, "/long", "4 " + std::string(5000, 'x'));
  lengthen("/long", std::string(5000, '9'));
  CHECK(clients.add(1, "/long", 1) == i64(5));
  clients.set(1, "/blanks", std::string(5000, ' '));
  lengthen("/blanks", std::string(5000, '0') + "7");
  CHECK(clients.add(1, "/blanks", 1) == i64(8));
  clients.set(1, "/many", std::string(5000, '9'));
  CHECK(clients.refused(1, Clients::number(Op::kAdd, "/many", 1)) == Refusal::Kind::kNotANumber);
}

TEST_CASE("add to what is no number is refused and changes nothing") {
  for (const std::string& value :
       {std::string(), std::string("abc"), std::string("-"), std::string("+"), std::string("--1"), std::string("+-1"),
        std::string("   "), std::string("9223372036854775808"), std::string("\0001", 2)}) {
    CAPTURE(value);
    Clients clients;
    clients.set(1, "/n", value);
    CHECK(clients.refused(1, Clients::number(Op::kAdd, "/n", 1)) == Refusal::Kind::kNotANumber);
    CHECK(clients.refused(1, Clients::number(Op::kBarrier, "/n", 1)) == Refusal::Kind::kNotANumber);
    CHECK(clients.get("/n") == text(value));
  }
}

TEST_CASE("a sum beyond 64 bits is refused, the value unchanged") {
  Clients clients;
  CHECK(clients.add(1, "/n", kMost) == i64(kMost));
  CHECK(clients.refused(1, Clients::number(Op::kAdd, "/n", 1)) == Refusal::Kind::kOutOfRange);
  CHECK(clients.refused(1, Clients::number(Op::kBarrier, "/n", 1)) == Refusal::Kind::kOutOfRange);
  CHECK(clients.get("/n") == text(std::to_string(kMost)));
  clients.set(1, "/n", std::to_string(kLeast));
  CHECK(clients.refused(1, Clients::number(Op::kAdd, "/n", -1)) == Refusal::Kind::kOutOfRange);
}

TEST_CASE("check tells whether all keys are there") {
  Clients clients;
  clients.set(1, "/a", "1");
  CHECK(clients.check({"/a"}) == kZero);
  CHECK(clients.check({"/a", "/b"}) == kOne);
  CHECK(clients.check({}) == kZero);
  clients.push(1, "/b", "item");
  CHECK(clients.check({"/a", "/b"}) == kZero);
  clients.pop("/b");
  CHECK(clients.check({"/b"}) == kOne);
}

TEST_CASE("delete_key removes a value once, and never a queue") {
  Clients clients;
  clients.set(1, "/k", "1");
  CHECK(clients.run(1, Clients::with(Op::kDeleteKey, "/k")) == i64(1));
  CHECK(clients.run(1, Clients::with(Op::kDeleteKey, "/k")) == i64(0));
  clients.push(1, "/q", "item");
  CHECK(clients.run(1, Clients::with(Op::kDeleteKey, "/q")) == i64(0));
  CHECK(clients.run(1, Clients::with(Op::kQueueLen, "/q")) == i64(1));
}

TEST_CASE("append makes a value or lengthens it") {
  Clients clients;
  CHECK(clients.run(1, Clients::with(Op::kAppend, "/k", "ab")).empty());
  CHECK(clients.run(2, Clients::with(Op::kAppend, "/k", "cd")).empty());
  CHECK(clients.get("/k") == text("abcd"));
}

TEST_CASE("a value grows by append as far as the store has room, and its pieces are one value") {
  Clients clients;
  const std::string part(limits::kStorePayloadBytes, 'v');
  for (int i = 0; i < 9; ++i) clients.run(1, Clients::with(Op::kAppend, "/k", part));
  for (const char* end : {"e", "n", "d"}) clients.run(1, Clients::with(Op::kAppend, "/k", end));
  const std::string value = clients.get("/k");
  CHECK(value.size() == 8 + 9 * part.size() + 3);
  CHECK(value.ends_with("vend"));
  clients.run(1, Clients::with(Op::kAppend, "/n", std::string(2000, ' ')));
  clients.run(1, Clients::with(Op::kAppend, "/n", "12"));
  CHECK(clients.compare_set(1, "/n", std::string(2000, ' ') + "13", "no") == text(std::string(2000, ' ') + "12"));
  CHECK(clients.add(1, "/n", 1) == i64(13));
  clients.run(1, Clients::with(Op::kAppend, "/n", std::string(1500, '.')));
  CHECK(clients.compare_set(1, "/n", "13" + std::string(1500, '.'), "yes") == text("yes"));
}

TEST_CASE("multi_set sets all pairs and multi_get answers in the order asked") {
  Clients clients;
  CHECK(clients.run(1, Clients::list(Op::kMultiSet, {"/a", "/b", "/a"}, {"1", "", "2"})).empty());
  CHECK(clients.run(1, Clients::list(Op::kMultiGet, {"/b", "/a", "/none"})) == text("") + text("2") + text(""));
  CHECK(clients.run(1, Clients::list(Op::kMultiGet, {})).empty());
  CHECK(clients.run(1, Clients::list(Op::kMultiSet, {})).empty());
}

TEST_CASE("an answer of any length is given, and takes no memory beside that of the store") {
  Clients clients;
  const std::string value(limits::kStorePayloadBytes, 'v');
  clients.set(1, "/k", value);
  Command many = Clients::list(Op::kMultiGet, std::vector<std::string>(100, "/k"));
  REQUIRE(clients.keyspace.apply(1, many, clients));
  CHECK(clients.replies_to(1).size() == 100 * (8 + value.size()));
  CHECK(clients.keyspace.loose()->count < 100 * 256);
  const Replies::Slice slice = clients.replies_to(1).take_bytes(2 * (8 + value.size()), clients.keyspace.loose());
  CHECK(slice.pieces == std::vector<std::string_view>{i64(1 << 23), value, i64(1 << 23), value});
}

TEST_CASE("an answer is what was there when it was asked for, whatever becomes of the value") {
  Clients clients;
  const std::string old(100'000, 'o');
  clients.set(1, "/set", old);
  clients.set(1, "/deleted", old);
  clients.set(1, "/longer", old);
  clients.push(1, "/popped", old);
  const auto ask = [&](Command command) { REQUIRE(clients.keyspace.apply(1, command, clients)); };
  ask(Clients::list(Op::kMultiGet, {"/set", "/deleted", "/longer"}));
  ask(Clients::with(Op::kQueuePop, "/popped"));
  CHECK(clients.keyspace.loose()->count > old.size());  // the popped item
  CHECK(clients.keyspace.loose()->count < 2 * old.size());
  ask(Clients::with(Op::kSet, "/set", std::string(100'000, 'n')));
  ask(Clients::with(Op::kDeleteKey, "/deleted"));
  ask(Clients::with(Op::kAppend, "/longer", std::string(100'000, 'n')));
  CHECK(clients.keyspace.loose()->count > 3 * old.size());
  CHECK(clients.keyspace.loose()->count < 4 * old.size());
  CHECK(clients.answers(1) == text(old) + text(old) + text(old) + i64(1) + text(old) + i64(1));
  CHECK(clients.keyspace.loose()->count == 0);
  CHECK(clients.get("/longer") == text(old + std::string(100'000, 'n')));
}

TEST_CASE("num_keys and list_keys tell of values, not of queues") {
  Clients clients;
  CHECK(clients.run(1, Clients::with(Op::kGetNumKeys, {})) == i64(0));
  CHECK(clients.run(1, Clients::with(Op::kListKeys, {})) == i64(0));
  clients.set(1, "init/", "1");
  clients.push(1, "/q", "item");
  CHECK(clients.run(1, Clients::with(Op::kGetNumKeys, {})) == i64(1));
  CHECK(clients.run(1, Clients::with(Op::kListKeys, {})) == i64(1) + text("init/"));
}

TEST_CASE("ping answers its nonce") {
  Clients clients;
  CHECK(clients.run(1, Clients::number(Op::kPing, {}, 0xF0003039)) == std::string("\x39\x30\x00\xF0", 4));
}

}  // namespace
}  // namespace elastic::store
