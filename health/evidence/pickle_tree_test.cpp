#include "health/evidence/pickle_tree.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "health/evidence/pickle_test_support.h"

using namespace elastic;
using namespace elastic::evidence;
using namespace elastic::evidence::test;

namespace {

Result<PickleTree> read(const std::string& bytes) { return PickleTree::read(bytes, "the dump"); }
std::string reason(const std::string& bytes) {
  const auto tree = read(bytes);
  return tree ? "" : tree.error().reason;
}

// A value as Python would show it.
std::string shown(PickleTree::Value value) {
  using Kind = PickleTree::Kind;
  std::string inner;
  const auto add = [&](const std::string& part) { inner += (inner.empty() ? "" : ", ") + part; };
  switch (value.kind()) {
    case Kind::kNone: return "None";
    case Kind::kBool: return *value.as_bool() ? "True" : "False";
    case Kind::kInteger: return std::to_string(*value.as_integer());
    case Kind::kFloat: return "a float";
    case Kind::kText: return "'" + std::string(*value.as_text()) + "'";
    case Kind::kDict:
      value.each_member(
          [&](std::string_view name, PickleTree::Value member) { add(std::string(name) + ": " + shown(member)); },
          1000);
      return "{" + inner + "}";
    default:
      value.each_item([&](PickleTree::Value item) { add(shown(item)); }, 1000);
      return (value.kind() == Kind::kTuple ? "(" : "[") + inner + (value.kind() == Kind::kTuple ? ")" : "]");
  }
}
std::string shown(const std::string& bytes) {
  const auto tree = read(bytes);
  return tree ? shown(tree->root()) + (tree->is_cut() ? " and then cut" : "") : "refused: " + tree.error().reason;
}

}  // namespace

TEST_CASE("a pickle's values are read: texts, numbers of every width, booleans, None, lists, pairs, dictionaries") {
  CHECK(shown(whole(dict({text("a"), list({small(255), "M\x34\x12", "J\xfe\xff\xff\xff", number(-5), real(1.5)}),
                          text("b"), pair(kTrue, kFalse), text("c"), kNothing, text(""), list({})}))) ==
        "{a: [255, 4660, -2, -5, a float], b: (True, False), c: None, : []}");
  CHECK(shown(whole(std::string("\x8a\x00", 2))) == "0");
  CHECK(shown(whole(std::string("\x8a\x01\x80", 3))) == "-128");
  CHECK(shown(whole(number(INT64_MIN))) == std::to_string(INT64_MIN));
}

TEST_CASE("a value that is remembered may stand in several places") {
  const std::string frame = dict({text("line"), small(7)}) + std::string("q\0", 2);
  CHECK(shown(whole(list({frame, std::string("h\0", 2), "j" + little_endian(0, 4)}))) ==
        "[{line: 7}, {line: 7}, {line: 7}]");
  CHECK(shown(whole(list({text("x") + "r" + little_endian(0, 4), std::string("h\0", 2)}))) == "['x', 'x']");
}

TEST_CASE("an opcode that imports, calls or builds is refused by its name, and nothing is executed") {
  // What pickle.dumps of an object whose __reduce__ is os.system("true") is.
  const std::string hostile = kBegin + "cposix\nsystem\nq\x01X\x04\x00\x00\x00trueq\x02\x85q\x03Rq\x04.";
  CHECK(reason(hostile) == "the opcode GLOBAL, which no dump has, is refused (at byte 2)");
  struct Refused {
    char byte;
    std::string name;
  };
  for (const auto& [byte, name] : std::vector<Refused>{{'R', "REDUCE"},
                                                       {'b', "BUILD"},
                                                       {'i', "INST"},
                                                       {'o', "OBJ"},
                                                       {'P', "PERSID"},
                                                       {'Q', "BINPERSID"},
                                                       {'\x81', "NEWOBJ"},
                                                       {'\x82', "EXT1"},
                                                       {'\x92', "NEWOBJ_EX"},
                                                       {'\x93', "STACK_GLOBAL"},
                                                       {'\x95', "FRAME"},
                                                       {'\x8b', "LONG4"},
                                                       {'0', "POP"}}) {
    CAPTURE(name);
    CHECK(reason(kBegin + kNothing + byte) == "the opcode " + name + ", which no dump has, is refused (at byte 3)");
  }
  CHECK(reason(kBegin + "\xff") == "the byte 0xff is no opcode (at byte 2)");
}

TEST_CASE("what is no pickle of protocol 2 is refused") {
  CHECK(reason("{\"version\": 1}") == "it does not begin as a pickle of protocol 2");
  CHECK(reason("\x80\x04N.") == "it is not a pickle of protocol 2 (at byte 0)");
  CHECK(reason(kBegin + kBegin + "N.") == "it is not a pickle of protocol 2 (at byte 2)");
  CHECK(reason("") == "it ends before its first value");
  CHECK(reason("\x80") == "it ends before its first value");
}

TEST_CASE("of a file that is cut off there is what came before, and it says so") {
  const std::string inner = dict({text("seq"), small(1), text("op"), text("all_reduce")});
  const std::string bytes = whole(dict({text("version"), text("2.10"), text("entries"), list({inner, inner})}));
  CHECK(shown(bytes) == "{version: '2.10', entries: [{seq: 1, op: 'all_reduce'}, {seq: 1, op: 'all_reduce'}]}");
  CHECK(shown(bytes.substr(0, bytes.size() - 1)) ==
        "{version: '2.10', entries: [{seq: 1, op: 'all_reduce'}, {seq: 1, op: 'all_reduce'}]} and then cut");
  // In the middle of the second entry's text.
  CHECK(shown(bytes.substr(0, bytes.size() - 6)) ==
        "{version: '2.10', entries: [{seq: 1, op: 'all_reduce'}, {seq: 1}]} and then cut");
  for (std::size_t size = 4; size < bytes.size(); ++size) {
    const auto tree = read(bytes.substr(0, size));
    if (!tree) continue;
    CHECK(tree->is_cut());
    CHECK(shown(tree->root()).size() <= shown(bytes).size());
  }
}

TEST_CASE("a pickle that does not fit together is refused") {
  CHECK(reason(kBegin + ".") == "STOP comes before everything has its place (at byte 2)");
  CHECK(reason(kBegin + "NN.") == "STOP comes before everything has its place (at byte 4)");
  CHECK(reason(kBegin + "](N.") == "STOP comes before everything has its place (at byte 5)");
  CHECK(reason(kBegin + "e") == "APPENDS has no mark with a value below (at byte 2)");
  CHECK(reason(kBegin + "(e") == "APPENDS has no mark with a value below (at byte 3)");
  CHECK(reason(kBegin + "N(e") == "APPENDS has nothing to put values into (at byte 4)");
  CHECK(reason(kBegin + "}(e") == "APPENDS has nothing to put values into (at byte 4)");
  CHECK(reason(kBegin + "]((Ne") == "APPENDS has nothing to put values into (at byte 6)");
  CHECK(reason(kBegin + "](u") == "SETITEMS has nothing to put values into (at byte 4)");
  CHECK(reason(kBegin + "}(Nu") == "SETITEMS has a key without a value (at byte 5)");
  CHECK(reason(kBegin + "N(N\x86") == "TUPLE2 needs two values (at byte 5)");
  CHECK(reason(kBegin + std::string("Nq\x01", 3)) == "a value is remembered out of order (at byte 3)");
  CHECK(reason(kBegin + std::string("q\0", 2)) == "a value is remembered out of order (at byte 2)");
  CHECK(reason(kBegin + std::string("h\0", 2)) == "a value is recalled that was not remembered (at byte 2)");
  CHECK(reason(kBegin + "\x8a\x09" + std::string(9, 'x')) == "a number has more than 8 bytes (at byte 2)");
}

TEST_CASE("no value can be put into itself") {
  // L = []; L.append(L); and by way of a second list.
  CHECK(reason(kBegin + std::string("]q\0(h\0e", 7)) == "APPENDS has nothing to put values into (at byte 8)");
  CHECK(reason(kBegin + std::string("]q\0(](h\0ee", 10)) == "APPENDS has nothing to put values into (at byte 11)");
}

TEST_CASE("a pickle above the bounds is refused") {
  std::string deep = kBegin;
  for (std::size_t i = 0; i <= kPickleLevels; ++i) deep += "](";
  CHECK(reason(deep) == "it is nested deeper than 16 levels (at byte 35)");
  // Without marks: pairs of pairs.
  std::string pairs = kBegin + "N";
  for (std::size_t i = 0; i <= kPickleLevels; ++i) pairs += "N\x86";
  CHECK(reason(pairs) == "it is nested deeper than 16 levels (at byte 36)");
  CHECK(reason(kBegin + std::string(kPickleValues + 1, 'N')) == "it has more than 1048576 values (at byte 1048578)");
  std::string recalls = kBegin + std::string("](Nq\0", 5);
  for (std::size_t i = 0; i < kPicklePushes; ++i) recalls += std::string_view("h\0", 2);
  CHECK(reason(recalls).starts_with("it puts values anywhere more than 4194304 times"));
  CHECK(reason(std::string(kPickleBytes + 1, 'N')) == "it has more than 32 MiB");
  // A length that is not there costs nothing.
  CHECK(reason(kBegin + "X\xff\xff\xff\xff") == "it ends before its first value");
}
