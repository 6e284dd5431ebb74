#include "src/base/json_archive.h"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

using namespace elastic;

namespace {

enum class Kind { kGood, kBad };
constexpr auto names_of(Kind) { return std::array{"good", "bad"}; }

struct Item {
  Kind kind = Kind::kGood;
  std::string text = {};
  bool operator==(const Item&) const = default;
  static void fields(auto& io, auto& v) {
    io.must("kind", v.kind);
    io("text", v.text);
  }
};
struct Beside {
  std::string failed = {};
  bool operator==(const Beside&) const = default;
  static void fields(auto& io, auto& v) { io("failed", v.failed); }
};
struct Message {
  std::uint64_t digest = 0;
  std::int64_t ms = 0;
  int rank = 3;
  bool flag = true;
  std::optional<double> figure = {};
  std::string text = {};
  std::vector<Item> items = {};
  std::vector<std::string> names = {};
  std::optional<Item> item = {};
  std::optional<Beside> beside = {};
  int inner = 0;
  bool operator==(const Message&) const = default;
  static void fields(auto& io, auto& v) {
    io("digest", v.digest);
    io("ms", v.ms, {-5, 5});
    io("rank", v.rank);
    io("flag", v.flag);
    io("figure", v.figure);
    io.if_set("text", v.text);
    io("items", v.items, at_most(2));
    io("names", v.names);
    io("item", v.item);
    io.beside("failed", v.beside);
    io.inside("inside", [&v](auto& inside) { inside("inner", v.inner); });
  }
};
struct Empty {
  static void fields(auto&, auto&) {}
};
using Either = std::variant<Empty, Item>;
constexpr auto names_of(const Either&) { return std::array{"empty", "item"}; }

const Message kFull = {.digest = UINT64_MAX,
                       .ms = -5,
                       .rank = -1,
                       .flag = false,
                       .figure = -0.5,
                       .text = "a \xff",
                       .items = {{Kind::kBad, "x"}, {}, {}},
                       .names = {"a", ""},
                       .item = Item{},
                       .beside = Beside{},
                       .inner = 4};

std::string error_of(const std::string& text, JsonForm form) {
  Message message;
  return read_json(*Json::parse(text, ""), message, form);
}

}  // namespace

TEST_CASE("in the exact form every value is read as it was, and what is not set is null") {
  const Json json = write_json(kFull, JsonForm::kExact);
  CHECK(json.dump() ==
        R"({"digest":"0xffffffffffffffff","ms":-5,"rank":-1,"flag":false,"figure":-0.5,"text":{"bytes":"6120ff"},)"
        R"("items":[{"kind":"bad","text":"x"},{"kind":"good","text":""},{"kind":"good","text":""}],"names":["a",""],)"
        R"("item":{"kind":"good","text":""},"failed":"","inside":{"inner":4}})");
  Message read;
  CHECK(read_json(json, read, JsonForm::kExact) == "");
  CHECK(read == kFull);
  const Json least = write_json(Message{}, JsonForm::kExact);
  CHECK(least.dump() ==
        R"({"digest":"0x0","ms":0,"rank":3,"flag":true,"figure":null,"text":null,"items":[],"names":[],"item":null,)"
        R"("inside":{"inner":0}})");
  CHECK(read_json(least, read = {}, JsonForm::kExact) == "");
  CHECK(read == Message{});
}

TEST_CASE("in the exact form the first member that is missing or wrong is named") {
  const std::string good = write_json(kFull, JsonForm::kExact).dump();
  const auto with = [&](const char* from, const char* to) {
    return error_of(replace_all(good, from, to), JsonForm::kExact);
  };
  CHECK(with("\"ms\":-5,", "") == "ms is missing");
  CHECK(with("\"ms\":-5", "\"ms\":-6") == "ms is not a whole number from -5 to 5");
  CHECK(with("\"rank\":-1", "\"rank\":2147483648") == "rank is not a whole number from -2147483648 to 2147483647");
  CHECK(with("\"flag\":false", "\"flag\":0") == "flag is neither true nor false");
  CHECK(with("\"0xffffffffffffffff\"", "7") == "digest is not 0x and 1 to 16 digits 0-9a-f");
  CHECK(with("6120ff", "6120f") == "text is not a text");
  CHECK(with("\"bad\"", "\"worse\"") == "items[0].kind is none of good, bad");
  CHECK(with("[\"a\",\"\"]", "[1]") == "names[0] is not a text");
  CHECK(with("{\"inner\":4}", "4") == "inside is not an object");
  CHECK(with("{\"inner\":4}", "{}") == "inside.inner is missing");
  CHECK(error_of("[]", JsonForm::kExact) == "it is not an object");
}

TEST_CASE("in the forgiving form what is not set is left out, and what cannot be read keeps its initial value") {
  CHECK(write_json(Message{}, JsonForm::kForgiving).dump() ==
        R"({"digest":0,"ms":0,"rank":3,"flag":true,"items":[],"names":[],"inside":{"inner":0}})");
  const auto json = Json::parse(
      R"({"digest":5,"ms":9,"rank":-1,"flag":1,"figure":-1,"text":7,)"
      R"("items":[3,{"text":"no kind"},{"kind":"bad"},{"kind":"good"},{"kind":"bad","text":"one too many"}],)"
      R"("names":["a",1,"b"],"item":{"text":"no kind"},"failed":3,"inside":{}})",
      "");
  Message read;
  CHECK(read_json(*json, read, JsonForm::kForgiving) == "");
  CHECK(read == Message{.digest = 5, .items = {{Kind::kBad}, {}}, .names = {"a", "b"}});
  CHECK(error_of("{}", JsonForm::kForgiving) == "inside is missing");
}

TEST_CASE("texts of others can be made printable, and of a message that means nothing the rest is read") {
  Item item;
  CHECK(read_json(*Json::parse(R"({"kind":"ugly","text":"a\nb0123456789"})", ""), item, JsonForm::kForgiving, 10) ==
        "kind is none of good, bad");
  CHECK(item.text == printable("a\nb0123456789", 10));
}

TEST_CASE("a variant is the name of its alternative, with the members of that") {
  Json json = Json::object();
  JsonWriter(json, JsonForm::kExact).one_of("which", Either(Item{Kind::kBad, "t"}));
  CHECK(json.dump() == R"({"which":"item","kind":"bad","text":"t"})");
  JsonReader reader(json, JsonForm::kExact);
  Either read;
  reader.one_of("which", read);
  CHECK(reader.error().empty());
  CHECK(std::get<Item>(read) == Item{Kind::kBad, "t"});
  json.set("which", "neither");
  JsonReader again(json, JsonForm::kExact);
  again.one_of("which", read);
  CHECK(again.error() == "which is none of empty, item");
}

TEST_CASE("in the plain form what is not set is null, and a number may have any form") {
  CHECK(write_json(Message{}, JsonForm::kPlain).dump() ==
        R"({"digest":0,"ms":0,"rank":3,"flag":true,"figure":null,"text":null,"items":[],"names":[],"item":null,)"
        R"("inside":{"inner":0}})");
  const auto json = Json::parse(R"({"digest":"5","ms":" -2 ","rank":7.9,"flag":null,"inside":{"inner":1e300}})", "");
  Message read;
  CHECK(read_json(*json, read, JsonForm::kPlain) == "");
  CHECK(read == Message{.digest = 5, .ms = -2, .rank = 7});
}
