#include "src/report/hang.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/json.h"
#include "src/report/hang_test_support.h"

using namespace elastic;
using namespace elastic::report;

namespace {

// The member `hang` of what hang_json() makes.
Json member_of(const Hang& hang, std::string_view run_id = "job") {
  auto json = Json::parse(hang_json(hang, run_id), "hang.json");
  REQUIRE(json.has_value());
  REQUIRE(json->find("hang") != nullptr);
  return *json->find("hang");
}

}  // namespace

TEST_CASE("hang.json has the job, and what was told as one object") {
  const std::string text = hang_json(testing::full_hang(), "night");
  const auto json = Json::parse(text, "hang.json");
  REQUIRE(json.has_value());
  CHECK(json->find("version")->as_integer() == kHangJsonVersion);
  CHECK(json->text_or_empty("run_id") == "night");
  CHECK(text.ends_with("}\n"));
  const Json hang = member_of(testing::full_hang());
  CHECK(hang.text_or_empty("state") == "open");
  CHECK(hang.find("silent_s")->as_number() == 250);
  CHECK(hang.find("recovered_after_s")->is_null());
  CHECK(hang.find("verdict")->dump() == R"({"rule":7,"name":"behind"})");
  CHECK(hang.find("culprits")->dump() ==
        R"([{"rank":5,"node":"gpu-2","pid":4711,"why":"rank 5 is one collective behind"}])");
  const Json& others = hang.find("groups")->as_array()->at(1);
  CHECK(others.text_or_empty("ranks") == "0-4,6-7");
  CHECK(others.find("seq")->as_integer() == 1904);
  CHECK(others.find("child_stack")->is_null());
}

TEST_CASE("what was told is read again as it was") {
  Hang hang = testing::full_hang();
  auto again = hang_of(member_of(hang).dump());
  REQUIRE(again.has_value());
  CHECK(*again == hang);

  hang = {.end = HangEnd::kRecovered, .recovered_after_s = 300.25, .culprits = {{.node = "gpu-1"}}};
  again = hang_of(member_of(hang).dump());
  REQUIRE(again.has_value());
  CHECK(*again == hang);
}

TEST_CASE("whatever a coordinator sends, what can be read is read, and is printable") {
  const auto hang = hang_of(
      R"({"silent_s":-4,"limit_s":"x","fault":7,"cause":"a\u001b[2Jb\n","culprits":[1,{"rank":"nine","node":"n"}],)"
      R"("groups":[{"ranks":"3","stack":[{"function":"f"},5]},"x"],"verdict":[],"state":"strange","last_line":null})");
  REQUIRE(hang.has_value());
  CHECK(hang->silent_s == 0);
  CHECK(hang->fault == "none");
  CHECK(hang->cause == "a\\x1b[2Jb\\x0a");
  CHECK(hang->end == HangEnd::kOpen);
  CHECK(hang->verdict == HangRule{});
  REQUIRE(hang->culprits.size() == 1);
  CHECK_FALSE(hang->culprits[0].rank.has_value());
  REQUIRE(hang->groups.size() == 1);
  CHECK(hang->groups[0].stack == HangStack{{.function = "f"}});
  CHECK_FALSE(hang->last_line.has_value());
}

TEST_CASE("what is no JSON object, nested too deep or too long is refused") {
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"), std::string("7"),
                                  std::string(1000, '['), std::string(kHangTextBytes + 1, ' ')}) {
    CAPTURE(text.substr(0, 20));
    CHECK_FALSE(hang_of(text).has_value());
  }
}

TEST_CASE("however many groups and culprits are sent, no more are kept than are ever told") {
  Hang hang;
  hang.groups.resize(1000);
  hang.culprits.resize(1000);
  const auto read = hang_of(member_of(hang).dump());
  REQUIRE(read.has_value());
  CHECK(read->groups.size() == kHangGroups);
  CHECK(read->culprits.size() == kHangCulprits);
}
