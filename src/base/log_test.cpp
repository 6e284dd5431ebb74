#include "src/base/log.h"

#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

#include "src/base/json.h"

using namespace elastic;

namespace {

// Collects what is logged during its lifetime.
struct Captured {
  explicit Captured(log::Format format = log::Format::kText) {
    log::set_format(format);
    log::set_output([this](std::string_view line) { lines.emplace_back(line); });
  }
  ~Captured() {
    log::set_output({});
    log::set_format(log::Format::kText);
    log::set_level(log::Level::kWarning);
  }
  Json json() const {
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find('\n') == lines[0].size() - 1);
    auto parsed = Json::parse(lines[0], "the line");
    REQUIRE(parsed.has_value());
    return *parsed;
  }

  std::vector<std::string> lines;
};

std::string text(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  REQUIRE(member != nullptr);
  REQUIRE(member->as_string() != nullptr);
  return *member->as_string();
}

}  // namespace

TEST_CASE("levels are read as Python's logging names them, in any case, and as numbers") {
  const auto level = [](std::string_view name) {
    const auto read = log::parse_level(name, "--log-level=x");
    return read ? static_cast<int>(*read) : -1;
  };
  using enum log::Level;
  struct Case {
    std::string_view name;
    log::Level level;
  };
  for (const Case& each : {Case{"debug", kDebug},
                           {"NOTSET", kDebug},
                           {"Info", kInfo},
                           {"WARN", kWarning},
                           {" warning ", kWarning},
                           {"error", kError},
                           {"CRITICAL", kCritical},
                           {"fatal", kCritical},
                           {"10", kDebug},
                           {"11", kInfo},
                           {"20", kInfo},
                           {"30", kWarning},
                           {"40", kError},
                           {"50", kCritical},
                           {"51", kOff}}) {
    CAPTURE(each.name);
    CHECK(level(each.name) == static_cast<int>(each.level));
  }
  for (const std::string_view bad : {"", "loud", "infos", "1.5"}) CHECK(level(bad) == -1);
  CHECK(log::parse_level("loud", "LOGLEVEL=loud").error().text() ==
        "LOGLEVEL=loud: not a log level; use debug, info, warning, error or critical");
}

TEST_CASE("only events of the level and above are printed, and an answer always") {
  struct Case {
    log::Level level;
    std::size_t lines;
  };
  for (const Case& each : {Case{log::Level::kDebug, 6},
                           {log::Level::kInfo, 5},
                           {log::Level::kWarning, 4},
                           {log::Level::kError, 3},
                           {log::Level::kCritical, 2},
                           {log::Level::kOff, 1}}) {
    Captured captured;
    log::set_level(each.level);
    log::debug("a", "d");
    log::info("a", "i");
    log::warning("a", "w");
    log::error("a", "e");
    log::critical("c");
    log::answer("a", "a");
    CHECK(captured.lines.size() == each.lines);
  }
}

TEST_CASE("a line of text names the program and the level, whatever the event is called") {
  Captured captured;
  log::set_level(log::Level::kDebug);
  log::info("store_open", "round 0", {{"round", 0}});
  log::warning("restart", "w");
  log::critical("it ends");
  log::answer("store_listens", "port 1");
  CHECK(captured.lines == std::vector<std::string>{"elastic-run: info: round 0\n", "elastic-run: warning: w\n",
                                                   "elastic-run: error: it ends\n", "elastic-run: port 1\n"});
}

TEST_CASE("a text with line ends and control characters is one line") {
  Captured captured;
  log::warning("restart", "a\nb\r\x1b[2Jc\xff \xc3\xa9");
  CHECK(captured.lines == std::vector<std::string>{"elastic-run: warning: a\\x0ab\\x0d\\x1b[2Jc\\xff \xc3\xa9\n"});
}

TEST_CASE("a JSON line has the time, the level, the event, the message and what else is known") {
  Captured captured(log::Format::kJson);
  log::warning("restart", "rank 1 failed", {{"round", 3}, {"reason", "x"}});
  const Json json = captured.json();
  CHECK(std::regex_match(text(json, "time"), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")));
  CHECK(text(json, "level") == "warning");
  CHECK(text(json, "event") == "restart");
  CHECK(text(json, "message") == "rank 1 failed");
  CHECK(json.find("round")->as_number() == 3);
  CHECK(text(json, "reason") == "x");
  CHECK(json.as_object()->size() == 6);
}

TEST_CASE("what ends elastic-run has an event in JSON, too, and levels keep their own names") {
  Captured captured(log::Format::kJson);
  log::critical("it ends");
  CHECK(text(captured.json(), "event") == "refused");
  CHECK(text(captured.json(), "level") == "critical");
}

TEST_CASE("whatever a text contains, its JSON line can be parsed and says it") {
  Captured captured(log::Format::kJson);
  log::warning("restart", std::string_view("a\n\"b\\\x01\x1b\0 \xc3\xa9 \xff\xfe", 15));
  CHECK(text(captured.json(), "message") == std::string("a\n\"b\\\x01\x1b\0 \xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd", 19));
}

TEST_CASE("the line of an event can be had without printing it") {
  Captured captured;
  CHECK(log::line(log::Level::kWarning, "dropped", "lost") == "elastic-run: warning: lost\n");
  CHECK(captured.lines.empty());
}

TEST_CASE("an observer hears of every event with its fields, whatever the level") {
  Captured captured;
  std::vector<std::string> heard;
  log::set_level(log::Level::kCritical);
  log::set_observer([&](log::Level level, std::string_view event, std::string_view told, const Json& fields) {
    heard.push_back(std::string(log::name_of(level)) + " " + std::string(event) + " " + std::string(told) + " " +
                    fields.dump());
  });
  log::debug("signal", "got SIGTERM", {{"signal", "SIGTERM"}});
  log::write_event(log::Level::kWarning, "checked", "one is bad", Json::object().set("bad", Json::array().push(3)));
  log::answer("store_listens", "port 1", {{"port", 1}});
  log::lines("no event\n");
  log::set_observer({});
  log::debug("signal", "not heard");
  CHECK(heard == std::vector<std::string>{R"(debug signal got SIGTERM {"signal":"SIGTERM"})",
                                          R"(warning checked one is bad {"bad":[3]})",
                                          R"(info store_listens port 1 {"port":1})"});
  CHECK(captured.lines == std::vector<std::string>{"elastic-run: port 1\n"});
}
