#include "src/base/python_json.h"

#include <doctest/doctest.h>

using namespace elastic;

TEST_CASE("JSON for Python's readers is what json.dumps would have written") {
  const Json json = Json::object()
                        .set("a", Json::array().push(1).push(Json()).push(true))
                        .set("b", Json::object())
                        .set("c", Json::array())
                        .set("d", "x\"\\\n\t\x7f");
  CHECK(python_json(json) == R"({"a": [1, null, true], "b": {}, "c": [], "d": "x\"\\\n\t\u007f"})");
  CHECK(python_json(Json("\xc3\xa9 \xf0\x9f\x98\x80 \xff")) == R"("\u00e9 \ud83d\ude00 \ufffd")");
}

TEST_CASE("numbers are written as Python's repr has them") {
  CHECK(python_json(Json(306.2135489999491)) == "306.2135489999491");
  CHECK(python_json(Json(2.0)) == "2.0");
  CHECK(python_json(Json(1e16)) == "1e+16");
  CHECK(python_json(Json(0.0001)) == "0.0001");
  CHECK(python_json(Json(1e-5)) == "1e-05");
  CHECK(python_json(Json(std::int64_t{-9007199254740993})) == "-9007199254740993");
}
