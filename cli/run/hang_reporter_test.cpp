#include "cli/run/hang_reporter.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/base/log.h"
#include "src/report/hang_test_support.h"

using namespace elastic;
using run::HangReporter;

namespace {

constexpr std::int64_t kPatienceMs = 10'000;
constexpr const char* kScreen = "no progress for 4 min 10 s\n  cause: rank 5 is not in the collective\n";

struct Told {
  log::Level level;
  std::string event;
  std::string text;
  Json fields;
};

// A reporter in a directory of its own, and what it logs.
struct Reporter {
  Reporter() {
    char name[] = "/tmp/hang_reporter.XXXXXX";
    top = mkdtemp(name);
    log::set_output([this](std::string_view line) { screen += line; });
    log::set_observer([this](log::Level level, std::string_view event, std::string_view text, const Json& fields) {
      events.push_back({level, std::string(event), std::string(text), fields});
    });
  }
  ~Reporter() {
    log::set_observer({});
    log::set_output({});
    files.finish(kPatienceMs);  // or the side thread may make the directory again
    std::filesystem::remove_all(top);
  }
  std::string directory() const { return top + "/attempt_0/hang"; }
  void finish() { REQUIRE(files.finish(kPatienceMs)); }
  std::string file(const std::string& name) {
    finish();
    std::ifstream in(directory() + "/" + name);
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  Json told_in_file() {
    const auto json = Json::parse(file("hang.json"), "hang.json");
    REQUIRE(json.has_value());
    return *json->find("hang");
  }

  std::string top;
  std::string screen;
  std::vector<Told> events;
  net::SideThread files;
  HangReporter reporter{files, "night"};
};

}  // namespace

TEST_CASE("a verdict is told on the screen, as an event and in two files, which this node's directory is named in") {
  Reporter here;
  here.reporter.round_began(3, here.directory());
  report::Hang hang = report::testing::full_hang();
  hang.evidence = "/another/node";
  hang.round = 99;
  here.reporter.report_verdict(3, kScreen, hang);

  CHECK(here.screen.contains("no progress for 4 min 10 s\n  cause: rank 5 is not in the collective\n  evidence: " +
                             here.directory() + " (open hang.html)\n"));
  REQUIRE(here.events.size() == 1);
  const Told& event = here.events[0];
  CHECK(event.level == log::Level::kWarning);
  CHECK(event.event == "hang");
  CHECK(event.fields.text_or_empty("state") == "told");
  CHECK(event.fields.find("round")->as_integer() == 3);
  CHECK(event.fields.find("milliseconds")->as_integer() == 250'000);
  CHECK(event.fields.find("rule")->as_integer() == 7);
  CHECK(event.fields.find("ranks_at_fault")->dump() == "[5]");
  CHECK(event.fields.find("nodes_at_fault")->dump() == "[\"gpu-2\"]");
  CHECK(event.fields.text_or_empty("evidence") == here.directory());
  CHECK(event.fields.text_or_empty("action") == "nothing: --hang=report");

  const Json told = here.told_in_file();
  CHECK(told.find("round")->as_integer() == 3);
  CHECK(told.text_or_empty("state") == "open");
  CHECK(told.text_or_empty("evidence") == here.directory());
  CHECK(told.find("wall_ms")->as_integer().value_or(0) > 1'700'000'000'000);
  CHECK(here.file("hang.html").contains("<h1>Job night makes no progress</h1>"));
}

TEST_CASE("a hang that is over is told, and stands so in the files and in what is kept") {
  Reporter here;
  here.reporter.round_began(3, here.directory());
  here.reporter.report_verdict(3, kScreen, report::testing::full_hang());
  here.reporter.recovered(3, 300'250);
  CHECK(here.events.back().level == log::Level::kWarning);
  CHECK(here.events.back().fields.text_or_empty("state") == "recovered");
  CHECK(here.told_in_file().text_or_empty("state") == "recovered");
  CHECK(here.told_in_file().find("recovered_after_s")->as_number() == 300.25);
  REQUIRE(here.reporter.last().has_value());
  CHECK(here.reporter.last()->end == report::HangEnd::kRecovered);
}

TEST_CASE("a hang of an earlier round is over, but not one of the same round") {
  Reporter here;
  here.reporter.round_began(3, here.directory());
  here.reporter.report_verdict(3, kScreen, report::testing::full_hang());
  here.reporter.round_began(3, here.directory());
  CHECK(here.reporter.last()->end == report::HangEnd::kOpen);
  here.reporter.round_began(4, here.top + "/attempt_1/hang");
  CHECK(here.reporter.last()->end == report::HangEnd::kEnded);
  CHECK(here.told_in_file().text_or_empty("state") == "ended");
  here.reporter.recovered(3, 1000);
  CHECK(here.reporter.last()->end == report::HangEnd::kEnded);
}

TEST_CASE("workers that are sent SIGCONT are told, and so is whether that has helped") {
  Reporter here;
  here.reporter.round_began(3, here.directory());
  here.reporter.continued(3, 12'000, "rank 2 (node gpu-3) is stopped");
  CHECK(here.events.back().level == log::Level::kWarning);
  CHECK(here.events.back().fields.text_or_empty("state") == "continued");
  CHECK(here.events.back().fields.text_or_empty("cause") == "rank 2 (node gpu-3) is stopped");
  SUBCASE("it has") {
    for (const log::Level level : {log::Level::kWarning, log::Level::kInfo}) {
      here.reporter.withdrawn(3, 13'000);
      CHECK(here.events.back().level == level);
    }
  }
  SUBCASE("it has not, and another alarm is none") {
    here.reporter.report_verdict(3, kScreen, report::testing::full_hang());
    here.reporter.withdrawn(3, 13'000);
    CHECK(here.events.back().level == log::Level::kInfo);
  }
}

TEST_CASE("a suspicion and its end are for programs, and leave no file") {
  Reporter here;
  here.reporter.round_began(0, here.directory());
  here.reporter.suspected(0, 61'000, 60'000);
  here.reporter.withdrawn(0, 65'000);
  here.reporter.not_armed(0, "no progress is seen");
  REQUIRE(here.events.size() == 3);
  CHECK(here.events[0].fields.dump() == R"({"state":"suspect","round":0,"milliseconds":61000,"limit_ms":60000})");
  CHECK(here.events[1].fields.text_or_empty("state") == "withdrawn");
  CHECK(here.events[2].event == "hang_not_watched");
  for (const Told& event : here.events) CHECK(event.level == log::Level::kInfo);
  CHECK(here.screen.empty());
  here.finish();
  CHECK_FALSE(std::filesystem::exists(here.directory()));
  CHECK_FALSE(here.reporter.last().has_value());
}

TEST_CASE("without a log directory a hang is told and kept all the same") {
  Reporter here;
  here.reporter.round_began(0, "");
  here.reporter.report_verdict(0, kScreen, report::testing::full_hang());
  CHECK_FALSE(here.screen.contains("evidence:"));
  REQUIRE(here.reporter.last().has_value());
  CHECK_FALSE(here.reporter.last()->evidence.has_value());
}

TEST_CASE("files that cannot be written are one warning") {
  Reporter here;
  std::ofstream(here.top + "/attempt_0").put('x');  // a file stands where the directory should
  here.reporter.round_began(0, here.directory());
  here.reporter.report_verdict(0, kScreen, report::testing::full_hang());
  here.finish();
  REQUIRE(here.events.size() == 2);
  CHECK(here.events[1].event == "hang_report");
  CHECK(here.events[1].text.contains("cannot make " + here.directory()));
}
