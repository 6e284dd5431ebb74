#include "rendezvous/store/codec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rendezvous/store/limits.h"
#include "rendezvous/store/test_requests.h"

namespace elastic::store {
namespace {

using namespace test;

// The result of decoding some bytes: the commands, in one line each, and the refusal.
struct Decoded {
  std::vector<std::string> commands;
  bool refused = false;
  Refusal refusal{};
};

std::string told(const Command& command) {
  std::string line = std::to_string(static_cast<int>(command.op));
  const auto list = [&](const std::vector<std::string>& texts) {
    line += " [";
    for (const std::string& part : texts) line += part + ",";
    line += "]";
  };
  switch (command.op) {
    case Op::kSet:
    case Op::kAppend:
    case Op::kQueuePush: return line + " " + command.key + "=" + command.value;
    case Op::kCompareSet: return line + " " + command.key + " " + command.expected + "->" + command.value;
    case Op::kGet:
    case Op::kDeleteKey:
    case Op::kQueuePop:
    case Op::kQueueLen: return line + " " + command.key;
    case Op::kAdd:
    case Op::kBarrier: return line + " " + command.key + " " + std::to_string(command.number);
    case Op::kPing: return line + " " + std::to_string(command.number);
    case Op::kMultiSet:
      list(command.keys);
      list(command.values);
      return line;
    case Op::kCheck:
    case Op::kWait:
    case Op::kMultiGet: list(command.keys); return line;
    default: return line;
  }
}

Bytes bytes_of(std::string_view data) { return {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()}; }

void feed(Decoder& decoder, std::string_view piece, Decoded& decoded) {
  Bytes bytes = bytes_of(piece);
  for (;;) {
    const Decoder::Step step = decoder.next(bytes);
    if (step == Decoder::Step::kCommand) {
      decoded.commands.push_back(told(decoder.command()));
      continue;
    }
    if (step == Decoder::Step::kNeedMore && !bytes.empty()) FAIL("bytes were left over");
    decoded.refused = step == Decoder::Step::kRefused;
    if (decoded.refused) decoded.refusal = decoder.refusal();
    return;
  }
}

Decoded decode(const std::string& data, std::size_t piece_size = std::string::npos) {
  Decoder decoder;
  Decoded decoded;
  for (std::size_t at = 0; at < data.size() && !decoded.refused;) {
    const std::size_t size = std::min(piece_size, data.size() - at);
    feed(decoder, std::string_view(data).substr(at, size), decoded);
    at += size;
  }
  return decoded;
}

Refusal::Kind kind_of(const std::string& data) {
  const Decoded decoded = decode(data);
  REQUIRE(decoded.refused);
  CHECK(decoded.commands.empty());
  return decoded.refusal.kind;
}

// One request of each kind as a client sends it; below, the commands that it is decoded to.
const std::string kEverything =
    kHello + set("/foo", "bar") + op(Op::kCompareSet) + text("/foo") + text("") + text("x") + get("/foo") +
    add("init/", -2) + op(Op::kCheck) + key_list({"/a", "/b"}) + wait({}) + op(Op::kGetNumKeys) + op(Op::kDeleteKey) +
    text("/foo") + op(Op::kAppend) + text("/foo") + text("more") + op(Op::kMultiGet) + key_list({"", "/bb"}) +
    op(Op::kMultiSet) + i64(2) + text("/a") + text("1") + text("/b") + text("") + op(Op::kCancelWait) +
    ping({"\x39\x30\x00\xF0", 4}) + op(Op::kQueuePush) + text("/q") + text("item") + op(Op::kQueuePop) + text("/q") +
    op(Op::kQueueLen) + text("/q") + op(Op::kListKeys) + op(Op::kBarrier) + text("/foo") + i64(2);
const std::vector<std::string> kEverythingTold = {
    "1 /foo=bar", "2 /foo ->x",  "3 /foo",     "4 init/ -2",        "5 [/a,/b,]", "6 []",          "7",
    "8 /foo",     "9 /foo=more", "10 [,/bb,]", "11 [/a,/b,] [1,,]", "12",         "13 4026544185", "14 /q=item",
    "15 /q",      "16 /q",       "17",         "18 /foo 2"};

TEST_CASE("a client's bytes are understood as PyTorch's protocol has them") {
  // These are recorded bytes of torch 2.15: VALIDATE, PING of pid 12345, ADD init/ 1, SET foo=bar.
  const std::string recorded(
      "\x00\xCE\xF7\x85\x3C"
      "\x0D\x39\x30\x00\x00"
      "\x04\x05\x00\x00\x00\x00\x00\x00\x00init/\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x01\x04\x00\x00\x00\x00\x00\x00\x00/foo\x03\x00\x00\x00\x00\x00\x00\x00"
      "bar",
      5 + 5 + 22 + 24);
  const Decoded decoded = decode(recorded);
  CHECK_FALSE(decoded.refused);
  CHECK(decoded.commands == std::vector<std::string>{"13 12345", "4 init/ 1", "1 /foo=bar"});
}

TEST_CASE("every request is understood, however its bytes are cut") {
  CHECK(decode(kEverything).commands == kEverythingTold);
  for (const std::size_t piece : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 64u}) {
    CAPTURE(piece);
    const Decoded decoded = decode(kEverything, piece);
    CHECK_FALSE(decoded.refused);
    CHECK(decoded.commands == kEverythingTold);
  }
  for (std::size_t cut = 0; cut <= kEverything.size(); ++cut) {
    CAPTURE(cut);
    Decoder decoder;
    Decoded decoded;
    feed(decoder, std::string_view(kEverything).substr(0, cut), decoded);
    feed(decoder, std::string_view(kEverything).substr(cut), decoded);
    CHECK(decoded.commands == kEverythingTold);
  }
}

TEST_CASE("a command's strings may be taken away before the next command") {
  Decoder decoder;
  const std::string data = kHello + set("/a", std::string(100, 'x')) + set("/b", std::string(100, 'y'));
  Bytes bytes = bytes_of(data);
  REQUIRE(decoder.next(bytes) == Decoder::Step::kCommand);
  const std::string taken = std::move(decoder.command().value);
  REQUIRE(decoder.next(bytes) == Decoder::Step::kCommand);
  CHECK(taken == std::string(100, 'x'));
  CHECK(decoder.command().value == std::string(100, 'y'));
}

TEST_CASE("a stranger is refused by its first byte and named by what it seems to speak") {
  using Kind = Refusal::Kind;
  CHECK(kind_of("G") == Kind::kHttp);
  CHECK(kind_of("GET / HTTP/1.1\r\n\r\n") == Kind::kHttp);
  CHECK(kind_of("OPTIONS * HTTP/1.1\r\n") == Kind::kHttp);
  CHECK(kind_of("SSH-2.0-OpenSSH_9.2\r\n") == Kind::kSsh);
  CHECK(kind_of(std::string("\x16\x03\x01\x02\x00\x01", 6)) == Kind::kTls);
  CHECK(kind_of("\x16") == Kind::kTls);
  CHECK(kind_of("\x16\x55\x55\x55") == Kind::kUnknownProtocol);
  CHECK(kind_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == Kind::kHttp);
  CHECK(kind_of("*1\r\n$4\r\nPING\r\n") == Kind::kUnknownProtocol);
  CHECK(decode("*1\r\n").refusal.reason == "it speaks Redis's protocol, not PyTorch's TCPStore protocol");
  CHECK(kind_of("hello") == Kind::kUnknownProtocol);
  CHECK(kind_of(std::string("\xFF\x00\x00", 3)) == Kind::kUnknownProtocol);
  CHECK(kind_of("GEX") == Kind::kUnknownProtocol);
  CHECK(decode("hello").refusal.reason.find("68 65 6c 6c 6f") != std::string::npos);
}

TEST_CASE("clients of torch without VALIDATE are refused with a word about the version") {
  // In torch 1.13 ADD was 3 and SET was 0. The form of 2023 put the magic before each request.
  const std::string old_add = "\x03" + text("init/") + i64(1);
  const std::string old_set = std::string(1, '\0') + text("/foo") + text("bar");
  CHECK(kind_of(old_add) == Refusal::Kind::kOldTorch);
  CHECK(kind_of("\x03") == Refusal::Kind::kOldTorch);
  CHECK(kind_of(old_set) == Refusal::Kind::kOldTorch);
  CHECK(kind_of("\xCE\xF7\x85\x3C\x03") == Refusal::Kind::kQueryMagic);
  CHECK(kind_of("\x03" + i64(1'000'000'000)) == Refusal::Kind::kUnknownProtocol);
  CHECK(decode(old_add).refusal.reason.find("use torch 2.2 or newer") != std::string::npos);
}

TEST_CASE("a wrong magic number is refused at its first wrong byte") {
  CHECK(kind_of(std::string("\x00\xCE\xF7\x85\x3D", 5)) == Refusal::Kind::kWrongMagic);
  CHECK(kind_of(std::string("\x00\xCF", 2)) == Refusal::Kind::kWrongMagic);
  Decoder decoder;
  Decoded decoded;
  feed(decoder, std::string_view("\x00\xCE\xF7", 3), decoded);
  CHECK_FALSE(decoded.refused);
  feed(decoder, "\x86", decoded);
  REQUIRE(decoded.refused);
  CHECK(decoded.refusal.reason.find("00 ce f7 86") != std::string::npos);
}

TEST_CASE("an unknown request or a second VALIDATE is refused after the commands before it") {
  for (const auto& [bad, kind] :
       {std::pair{std::string("\x13"), Refusal::Kind::kUnknownOp},
        std::pair{std::string("\xFF"), Refusal::Kind::kUnknownOp}, std::pair{kHello, Refusal::Kind::kSecondValidate}}) {
    const Decoded decoded = decode(kHello + get("/a") + get("/b") + bad + get("/c"));
    CHECK(decoded.commands == std::vector<std::string>{"3 /a", "3 /b"});
    REQUIRE(decoded.refused);
    CHECK(decoded.refusal.kind == kind);
  }
}

TEST_CASE("after a refusal a decoder gives nothing more") {
  Decoder decoder;
  Decoded decoded;
  feed(decoder, "x", decoded);
  REQUIRE(decoded.refused);
  feed(decoder, kHello + get("/a"), decoded);
  CHECK(decoded.refused);
  CHECK(decoded.commands.empty());
}

TEST_CASE("the longest key is taken and one byte more is refused before any of it has come") {
  const std::string longest(limits::kStoreKeyBytes, 'k');
  CHECK(decode(kHello + get(longest)).commands == std::vector<std::string>{"3 " + longest});
  const std::string length = i64(static_cast<std::int64_t>(limits::kStoreKeyBytes) + 1);
  CHECK(kind_of(kHello + op(Op::kGet) + length) == Refusal::Kind::kKeyTooLong);
  CHECK(kind_of(kHello + op(Op::kWait) + i64(1) + length) == Refusal::Kind::kKeyTooLong);
  CHECK(kind_of(kHello + op(Op::kMultiSet) + i64(1) + length) == Refusal::Kind::kKeyTooLong);
  CHECK(kind_of(kHello + op(Op::kGet) + i64(-1)) == Refusal::Kind::kKeyTooLong);
}

TEST_CASE("the longest value is taken and one byte more is refused before any of it has come") {
  const std::string longest(limits::kStorePayloadBytes, 'v');
  Decoder decoder;
  const std::string data = kHello + set("/k", longest);
  Bytes bytes = bytes_of(data);
  REQUIRE(decoder.next(bytes) == Decoder::Step::kCommand);
  CHECK(decoder.command().value == longest);
  const std::string length = i64(static_cast<std::int64_t>(limits::kStorePayloadBytes) + 1);
  CHECK(kind_of(kHello + op(Op::kSet) + text("/k") + length) == Refusal::Kind::kValueTooLong);
  CHECK(kind_of(kHello + op(Op::kCompareSet) + text("/k") + text("") + length) == Refusal::Kind::kValueTooLong);
  CHECK(kind_of(kHello + op(Op::kMultiSet) + i64(1) + text("/k") + length) == Refusal::Kind::kValueTooLong);
}

TEST_CASE("the longest list is taken and one key more is refused by its count") {
  const auto most = static_cast<std::int64_t>(limits::kStoreKeysPerCommand);
  std::string data = kHello + op(Op::kCheck) + i64(most);
  for (std::int64_t i = 0; i < most; ++i) data += text("/k");
  Decoder decoder;
  Bytes bytes = bytes_of(data);
  REQUIRE(decoder.next(bytes) == Decoder::Step::kCommand);
  CHECK(decoder.command().keys.size() == limits::kStoreKeysPerCommand);
  for (const Op which : {Op::kCheck, Op::kWait, Op::kMultiGet, Op::kMultiSet}) {
    CHECK(kind_of(kHello + op(which) + i64(most + 1)) == Refusal::Kind::kTooManyKeys);
    CHECK(kind_of(kHello + op(which) + i64(-1)) == Refusal::Kind::kTooManyKeys);
  }
}

TEST_CASE("a request has as many long values as it likes, and is counted while it comes") {
  const std::string value(limits::kStorePayloadBytes, 'v');
  Decoder decoder;
  Decoded decoded;
  feed(decoder, kHello + op(Op::kMultiSet) + i64(10), decoded);
  for (int i = 0; i < 9; ++i) feed(decoder, text("/k") + text(value), decoded);
  REQUIRE_FALSE(decoded.refused);
  CHECK(decoder.held_bytes() > 9 * value.size());
}

TEST_CASE("an announced length or count takes no memory before its bytes come") {
  Decoder decoder;
  Decoded decoded;
  const std::string announced = text("/k") + i64(limits::kStorePayloadBytes);
  feed(decoder, kHello + op(Op::kSet) + announced + std::string(100, 'v'), decoded);
  CHECK(decoder.command().value.capacity() < 1024);
  Decoder lists;
  feed(lists, kHello + op(Op::kCheck) + i64(limits::kStoreKeysPerCommand), decoded);
  CHECK(lists.command().keys.capacity() <= 1024);
}

TEST_CASE("the memory of an unfinished request is counted, and of a finished one no more") {
  Decoder decoder;
  Decoded decoded;
  feed(decoder, kHello + op(Op::kSet) + text("/k") + i64(1000) + std::string(600, 'v'), decoded);
  CHECK(decoder.held_bytes() == 602);
  feed(decoder, std::string(399, 'v'), decoded);
  CHECK(decoder.held_bytes() == 1001);
  feed(decoder, "v", decoded);
  CHECK(decoded.commands.size() == 1);
  CHECK(decoder.held_bytes() == 0);
  // An empty key takes memory, too.
  feed(decoder, op(Op::kCheck) + i64(1000) + std::string(8 * 999, '\0'), decoded);
  CHECK(decoder.held_bytes() == 999 * sizeof(std::string));
  feed(decoder, std::string(8, '\0') + op(Op::kGetNumKeys), decoded);
  CHECK(decoded.commands.size() == 3);
  CHECK(decoder.held_bytes() == 0);
}

TEST_CASE("a large command leaves no memory with an idle connection") {
  const std::string large(1024 * 1024, 'v');
  Decoder decoder;
  Decoded decoded;
  feed(decoder, kHello + op(Op::kCompareSet) + text(std::string(8000, 'k')) + text(large) + text(large), decoded);
  feed(decoder, op(Op::kMultiSet) + i64(2) + text("/a") + text(large) + text("/b") + text(large), decoded);
  feed(decoder, op(Op::kCheck) + i64(1000) + std::string(8 * 1000, '\0'), decoded);
  REQUIRE(decoded.commands.size() == 3);
  const Command& kept = decoder.command();
  CHECK(kept.key.capacity() + kept.value.capacity() + kept.expected.capacity() < 2048);
  CHECK(kept.keys.capacity() <= 16);
  CHECK(kept.values.capacity() <= 16);
  CHECK(kept.keys.empty());
}

TEST_CASE("the memory of a large command can be given back before the next one comes") {
  const std::string large(1024 * 1024, 'v');
  const std::string text_of_two =
      kHello + op(Op::kCompareSet) + text("/k") + text(large) + text(large) + op(Op::kGetNumKeys);
  Bytes bytes(reinterpret_cast<const std::uint8_t*>(text_of_two.data()), text_of_two.size());
  Decoder decoder;
  REQUIRE(decoder.next(bytes) == Decoder::Step::kCommand);
  CHECK(decoder.command().expected == large);
  decoder.forget_command();
  CHECK(decoder.command().value.capacity() + decoder.command().expected.capacity() < 1024);
  CHECK(decoder.next(bytes) == Decoder::Step::kCommand);
  CHECK(decoder.command().op == Op::kGetNumKeys);
}

TEST_CASE("the time to read a request does not grow with the number of its pieces") {
  // A decoder that began at the start for each piece would take 10^11 steps, and the test would never end.
  const auto keys = static_cast<std::int64_t>(limits::kStoreKeysPerCommand);
  std::string data = kHello + op(Op::kCheck) + i64(keys);
  for (std::int64_t i = 0; i < keys; ++i) data += text("/key");
  CHECK(decode(data, 1).commands.size() == 1);
  CHECK(decode(kHello + set("/k", std::string(1024 * 1024, 'v')), 1).commands.size() == 1);
}

TEST_CASE("replies are little-endian numbers, and strings after their length") {
  std::string out;
  put_byte(out, kNotReady);
  put_u32(out, 0x3C85F7CE);
  put_i64(out, -2);
  put_string(out, "ab");
  CHECK(out == std::string("\x01\xCE\xF7\x85\x3C\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                           "\x02\x00\x00\x00\x00\x00\x00\x00"
                           "ab",
                           23));
}

}  // namespace
}  // namespace elastic::store
