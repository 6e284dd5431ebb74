#include "src/base/json.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("a JSON object keeps the order of its members and reads back equal") {
  Json json = Json::object();
  json.set("z", 1).set("a", "text").set("list", Json::array().push(true).push(Json()));
  CHECK(json.dump() == R"({"z":1,"a":"text","list":[true,null]})");
  const auto back = Json::parse(json.dump(), "test");
  REQUIRE(back.has_value());
  CHECK(back->dump() == json.dump());
  CHECK(*back->find("a")->as_string() == "text");
  CHECK(back->find("missing") == nullptr);
}

TEST_CASE("the text of a member is found where there is one and it is a text") {
  const auto json = Json::parse(R"({"a":"text","b":3,"c":""})", "test");
  REQUIRE(json.has_value());
  CHECK(*json->find_text("a") == "text");
  CHECK(json->text_or_empty("a") == "text");
  CHECK(json->find_text("c")->empty());
  for (const char* other : {"b", "missing"}) {
    CAPTURE(other);
    CHECK(json->find_text(other) == nullptr);
    CHECK(json->text_or_empty(other).empty());
  }
  CHECK(Json(1).find_text("a") == nullptr);
}

TEST_CASE("malformed JSON is an error that names what was read") {
  const auto bad = Json::parse("{\"a\":", "error.json");
  REQUIRE(!bad.has_value());
  CHECK(bad.error().what == "cannot read error.json");
}

TEST_CASE("bytes that are not UTF-8 do not stop JSON from being written") {
  CHECK(Json("a\xff").dump() == "\"a\xEF\xBF\xBD\"");
}

TEST_CASE("JSON is written on one line, or with its members indented") {
  const std::string line =
      R"({"none":[],"nothing":{},"list":[1,-2.5,1e+22,true,null,[{"a\"b\u0001":"\n"}]],"last":9223372036854775807})";
  const auto json = Json::parse(line, "test");
  REQUIRE(json.has_value());
  CHECK(json->dump() == line);
  CHECK(json->dump(2) == R"({
  "none": [],
  "nothing": {},
  "list": [
    1,
    -2.5,
    1e+22,
    true,
    null,
    [
      {
        "a\"b\u0001": "\n"
      }
    ]
  ],
  "last": 9223372036854775807
})");
  CHECK(Json::array().push(1).dump(0) == "[\n1\n]");
}
