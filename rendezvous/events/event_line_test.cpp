#include "rendezvous/events/event_line.h"

#include <doctest/doctest.h>

#include "rendezvous/events/limits.h"
#include "src/base/limits.h"

using namespace elastic;
using events::EventLines;

namespace {

constexpr EventLines::Moment kThen{1'795'279'603'045'678, 42};

Json parsed(const std::string& line) {
  REQUIRE(line.back() == '\n');
  CHECK(line.find('\n') == line.size() - 1);
  return *Json::parse(line, "the line");
}

}  // namespace

TEST_CASE("a line of --events says what, when and in which job, and nothing of a round before there is one") {
  EventLines lines({"night", "host-a", 77});
  CHECK(lines.line("info", "launch", "it begins", Json::object().set("title", "t"), kThen) ==
        R"({"event":"launch","time":"2026-11-21T16:46:43.045678Z","monotonic_ms":42,"level":"info","job":"night",)"
        R"("host":"host-a","launcher":77,"node":null,"round":null,"restart_count":null,"message":"it begins",)"
        R"("title":"t"})"
        "\n");
}

TEST_CASE(
    "from the preparation of a round on each line of --events has its number, the node's rank and the restart count") {
  EventLines lines({"night", "host-a", 77});
  const Json prepared = Json::object().set("round", 5).set("restart_count", 2).set("node_rank", 1);
  lines.line("info", "round_prepared", "", prepared, kThen);
  const Json told = parsed(lines.line("debug", "signal", "", Json::object(), kThen));
  CHECK(told.find("round")->as_integer() == 5);
  CHECK(told.find("restart_count")->as_integer() == 2);
  CHECK(told.find("node")->as_integer() == 1);
  // A round that the event names itself replaces the launcher's.
  const Json of_old = parsed(lines.line("info", "verdict", "", Json::object().set("round", 4), kThen));
  CHECK(of_old.find("round")->as_integer() == 4);
}

TEST_CASE("another job of which a coordinator tells does not take the place of the launcher's own") {
  EventLines lines({"night", "host-a", 77});
  const Json told = parsed(lines.line("info", "coordinator", "", Json::object().set("job", "day"), kThen));
  CHECK(*told.find("job")->as_string() == "night");
  CHECK(*told.find("of_job")->as_string() == "day");
}

TEST_CASE("a line of --events is bounded, and says that it was cut") {
  EventLines lines({"night", "host-a", 77});
  Json many = Json::array();
  for (int i = 0; i < 5000; ++i) many.push(i);
  // The text has characters that take six bytes each in JSON, there is a list, and the job's name is as long as it may
  // be.
  EventLines long_name({std::string(limits::kAgentNameBytes, '\x01'), std::string(300, 'h'), 77});
  for (EventLines* which : {&lines, &long_name}) {
    const Json fields = Json::object().set("reason", std::string(100'000, '\x01')).set("nodes", many);
    const std::string line = which->line("warning", "checked", std::string(9000, 'x'), fields, kThen);
    CHECK(line.size() <= limits::kEventLineBytes);
    const Json told = parsed(line);
    CHECK(told.find("cut")->as_bool() == true);
    CHECK(*told.find("event")->as_string() == "checked");
    CHECK(*told.find("time")->as_string() == "2026-11-21T16:46:43.045678Z");
    CHECK(!told.find("message")->as_string()->empty());
  }
  const Json short_one = parsed(lines.line("info", "launch", "short", Json::object(), kThen));
  CHECK(short_one.find("cut") == nullptr);
}
