#include "health/evidence/ras_report.h"

#include <doctest/doctest.h>

#include <string>

#include "health/evidence/ras_test_support.h"

using namespace elastic;
using namespace elastic::evidence;
using namespace elastic::evidence::test;

namespace {

std::string refusal(const std::string& text) {
  const auto report = read_ras_report(text);
  return report ? "" : report.error().reason;
}

}  // namespace

TEST_CASE("a report as JSON says what each rank has launched, and who is missing") {
  const auto report = read_ras_report(
      report_json({{.hash = "0x1f",
                    .ranks = {{.rank = 0, .pid = 4711, .all_reduces = 1904, .broadcasts = 2},
                              {.rank = 1, .pid = 4712, .all_reduces = 1903, .broadcasts = 2, .async_error = 6}},
                    .missing = {{.rank = 2, .host = "10.0.0.2", .pid = 99, .is_dead = true}}},
                   {.hash = "0x20"}}));
  REQUIRE(report);
  CHECK(report->nccl_version == "2.30.7");
  CHECK(report->has_counts);
  CHECK(report->timeouts == 0);
  CHECK(report->left_out == 0);
  REQUIRE(report->communicators.size() == 2);
  const RasCommunicator& first = report->communicators[0];
  CHECK(first.hash == "0x1f:0xa:0xb");
  CHECK(first.size == 3);
  REQUIRE(first.ranks.size() == 2);
  CHECK(first.ranks[1].process == RasProcess{"10.0.0.1", 4712});
  CHECK(first.ranks[1].launched == RasCounts{2, 0, 0, 0, 1903});
  CHECK(first.ranks[1].async_error == 6);
  CHECK_FALSE(first.ranks[1].is_ending);
  REQUIRE(first.missing.size() == 1);
  CHECK(first.missing_ranks == 1);
  CHECK(first.missing[0].rank == 2);
  CHECK(first.missing[0].is_silent);
  CHECK(first.missing[0].is_dead);
  CHECK(report->communicators[1].ranks.empty());
}

TEST_CASE("the comma that NCCL 2.28.9 leaves out before a missing rank's status is no harm") {
  const SaidCommunicator said{
      .ranks = {{.rank = 0, .pid = 1}},
      .missing = {{.rank = 1, .pid = 2}, {.rank = 2, .host = "10.0.0.3", .pid = 3, .is_dead = true}}};
  const auto report = read_ras_report(report_json({said, said}, true));
  REQUIRE(report);
  REQUIRE(report->communicators.size() == 2);
  REQUIRE(report->communicators[1].missing.size() == 2);
  CHECK(report->communicators[1].missing[1].process == RasProcess{"10.0.0.3", 3});
  CHECK(report->communicators[1].missing[1].is_dead);
}

TEST_CASE("a report as JSON that broke off, or is another document, is refused with the reason") {
  const std::string whole = report_json({{.ranks = {{.rank = 0}}}});
  for (std::size_t size = 1; size + 2 < whole.size(); ++size) CHECK_FALSE(read_ras_report(whole.substr(0, size)));
  CHECK(refusal("{}") == "it has no list of communicators");
  CHECK(refusal("{\"communicators\": 3}") == "it has no list of communicators");
  CHECK(refusal(std::string(20, '{')) == "it is nested deeper than 8 levels");
  CHECK(refusal("").starts_with("it begins neither as JSON nor as a report's text"));
  CHECK(refusal("SSH-2.0-OpenSSH_9.2\r\n") ==
        "it begins neither as JSON nor as a report's text: SSH-2.0-OpenSSH_9.2\\x0d");
}

TEST_CASE("what has another type than it should is unknown, and ranks that say too little are counted") {
  const auto report = read_ras_report(
      R"({"nccl_version": 7, "communicators": [3, {"hash": 1, "size": "x", "ranks": [{"rank": -1}, {"rank": 0},
          {"rank": 1, "host": 5, "collective_counts": {"AllReduce": "many"}}], "missing_ranks": {}}]})");
  REQUIRE(report);
  CHECK(report->left_out == 3);
  REQUIRE(report->communicators.size() == 1);
  REQUIRE(report->communicators[0].ranks.size() == 1);
  CHECK(report->communicators[0].ranks[0].process == RasProcess{"", -1});
  CHECK(report->communicators[0].ranks[0].launched == RasCounts{});
}
