#include "src/report/failure_json.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "src/base/json.h"
#include "src/base/screen_text.h"
#include "src/report/hang_test_support.h"
#include "src/report/summary.h"

using namespace elastic;
using namespace elastic::report;

namespace {

FailedWorker full_worker() {
  return {.host = "node1.example.com",
          .node_rank = 1,
          .rank = 9,
          .local_rank = 1,
          .pid = 4711,
          .exit = {.signal = SIGSEGV, .core_dumped = true},
          .wall_ms = 1'795'279'603'500,
          .start = WorkerStart::kWarm,
          .error_file = "/logs/error.json",
          .error = ErrorFile{.message = "m", .traceback = "t\n", .timestamp_s = 1795279602, .error_code = -11},
          .error_file_problem = "none really",
          .oom_evidence = "oom_kill 0 -> 1",
          .kernel_log = "NVRM: Xid",
          .core_file = "/var/cores/x",
          .timer = ExpiredTimer{.scope = "load",
                                .late_ms = 104,
                                .signal = SIGSEGV,
                                .pid = 4711,
                                .stack = {{.function = "load_batch", .file = "/job/train.py", .line = 12}},
                                .problem = "none really"},
          .tail = {.bytes = "last words \xff\n", .source = "/logs/stderr.log", .lines_before = 17}};
}

JobReport full_report() {
  JobReport report{.version = "0.1.0",
                   .run_id = "none",
                   .title = "train.py",
                   .program = "python3 -u train.py",
                   .reason = "a reason",
                   .restarts_used = 2,
                   .max_restarts = 3,
                   .log_directory = "/logs/none_x",
                   .left_behind = "process 7",
                   .host = "node0.example.com",
                   .node_rank = 1,
                   .utc_offset_s = -3600,
                   .failures = {full_worker()},
                   .hang = testing::full_hang()};
  report.failures.push_back({.rank = 3,
                             .exit = {.code = 3},
                             .stopped_by_us = true,
                             .tail = {.none_because = "it went to a terminal", .lines_before = {}}});
  report.rounds = {{.round = 0,
                    .restart_count = 0,
                    .node_rank = 1,
                    .host = "node1",
                    .began_ms = 5,
                    .ended_ms = 9,
                    .first_rank = 8,
                    .rank_count = 8,
                    .start = WorkerStart::kWarm,
                    .failures = {full_worker()}},
                   {.round = 1, .restart_count = 1, .began_ms = 10, .ended_ms = 20, .reason = "a worker failed"}};
  return report;
}

JobReport read(std::string_view text) {
  auto report = parse_failure_json(text, "failure.json");
  if (!report) FAIL(report.error().text());
  return std::move(*report);
}

std::string reason(std::string_view text) {
  const auto report = parse_failure_json(text, "failure.json");
  return report ? "" : report.error().text();
}

}  // namespace

TEST_CASE("a report that was written and read again is the same, and prints the same") {
  const std::string text = failure_json(full_report());
  const JobReport again = read(text);
  CHECK(failure_json(again) == text);
  CHECK(failure_summary(again) == failure_summary(full_report()));
  const FailedWorker& worker = again.failures.at(0);
  CHECK(worker.tail.bytes == "last words \xff\n");
  CHECK(worker.tail.lines_before == 17);
  CHECK(worker.error == full_worker().error);
  CHECK(worker.timer == full_worker().timer);
  CHECK(worker.exit.core_dumped);
  CHECK(again.failures.at(1).stopped_by_us);
  CHECK(again.failures.at(0).start == WorkerStart::kWarm);
  CHECK(again.rounds.at(0).start == WorkerStart::kWarm);
  CHECK(again.rounds.at(1).start == WorkerStart::kFresh);
  CHECK(text.contains("\"start\": \"fresh\""));
  CHECK_FALSE(again.failures.at(1).tail.lines_before);
  CHECK(again.rounds.at(1).reason == "a worker failed");
  CHECK(again.rounds.at(0).failures.at(0).pid == 4711);
  CHECK(again.hang == testing::full_hang());
}

TEST_CASE("failure.json has the last hang, and null where none was told") {
  const auto json = Json::parse(failure_json(full_report()), "x");
  REQUIRE(json);
  CHECK(json->find("hang")->text_or_empty("state") == "open");
  CHECK(json->find("hang")->find("verdict")->text_or_empty("name") == "behind");
  CHECK(failure_json({}).contains("\"hang\": null"));
  CHECK_FALSE(read(R"({"version": 1, "outcome": "failed", "hang": 5})").hang.has_value());
  CHECK_FALSE(read(R"({"version": 1, "outcome": "failed"})").hang.has_value());
}

TEST_CASE("failure.json is valid UTF-8 whatever bytes the job has used") {
  JobReport report = full_report();
  report.run_id = report.title = report.program = report.reason = report.failures[0].host = "\xff\xc3";
  report.failures[0].kernel_log = report.failures[0].core_file = report.failures[0].error_file = "\x80";
  const std::string text = failure_json(report);
  CHECK(is_utf8(text));
  CHECK(read(text).title == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("only a tail that is not UTF-8 is there as base64 too") {
  JobReport report = full_report();
  CHECK(failure_json(report).contains("\"base64\": \"bGFzdCB3b3JkcyD/Cg==\""));
  report.failures[0].tail.bytes = report.rounds[0].failures[0].tail.bytes = "ü\n";
  CHECK_FALSE(failure_json(report).contains("base64"));
}

TEST_CASE("failure.json has what tools look for: names of signals, times as text, the likely cause") {
  const auto json = Json::parse(failure_json(full_report()), "x");
  REQUIRE(json);
  const Json& failure = json->find("failures")->as_array()->at(0);
  CHECK(json->find("version")->as_number() == 1);
  CHECK(*json->find("outcome")->as_string() == "failed");
  CHECK(*failure.find("signal_name")->as_string() == "SIGSEGV");
  CHECK(*failure.find("time")->as_string() == "2026-11-21 15:46:43.500");
  CHECK(*failure.find("likely_cause")->find("rule")->as_string() == "killed-for-memory");
  CHECK(failure.find("exit_code")->as_number() == std::nullopt);
  CHECK(json->find("failures")->as_array()->at(1).find("exit_code")->as_number() == 3);
}

TEST_CASE("what is no failure.json of this version is refused with what is wrong") {
  CHECK(reason("") == "cannot read failure.json: it is empty");
  CHECK(reason("{\"version\": 1").contains("cannot read failure.json: "));
  CHECK(reason("[]").contains("it is not a JSON object"));
  CHECK(reason("{}").contains("it has no \"version\""));
  CHECK(reason(R"({"version": "one"})").contains("it has no \"version\""));
  CHECK(reason(R"({"version": 2, "outcome": "failed"})")
            .contains("it is of version 2, this elastic-run reads version 1"));
  CHECK(reason(R"({"version": 1})").contains("\"outcome\" is \"\""));
  CHECK(reason(R"({"version": 1, "outcome": "lost"})").contains("\"outcome\" is \"lost\""));
  CHECK(reason(R"({"version": 1, "outcome": "failed", "failures": 5})").contains("\"failures\" is not a list"));
  CHECK(reason(R"({"version": 1, "outcome": "failed", "failures": [{}, 5]})")
            .contains("\"failures\"[1] is not an object"));
  CHECK(reason(R"({"version": 1, "outcome": "failed", "rounds": [[]]})").contains("\"rounds\"[0] is not an object"));
  CHECK(reason(R"({"version": 1, "outcome": "failed", "rounds": [{"failures": {}}]})")
            .contains("\"failures\" is not a list"));
  CHECK(reason(std::string(100'000, '[')).contains("nested deeper than 64 levels"));
}

TEST_CASE("members that are missing, of the wrong type or out of range are taken as empty") {
  const JobReport report = read(R"({"version": 1, "outcome": "stopped", "run_id": 5, "restarts_used": "x", )"
                                R"("utc_offset_s": 1e300, "unknown": [],)"
                                R"( "failures": [{"rank": -1, "pid": 1e30, "signal": 4096, "exit_code": 1000, )"
                                R"("core_dumped": "true", "error": 7,)"
                                R"( "stderr_tail": {"text": "kept", "base64": "not base64!", "lines_before": -3}}, )"
                                R"({"stderr_tail": 5}]})");
  CHECK(report.outcome == JobReport::Outcome::kStopped);
  CHECK(report.run_id.empty());
  CHECK(report.restarts_used == 0);
  CHECK(report.utc_offset_s == 0);
  const FailedWorker& worker = report.failures.at(0);
  CHECK(worker.rank == 0);
  CHECK(worker.pid == 0);
  CHECK(worker.exit.signal == 0);
  CHECK(worker.exit.code == 0);
  CHECK_FALSE(worker.exit.core_dumped);
  CHECK_FALSE(worker.error);
  CHECK(worker.tail.bytes == "kept");
  CHECK_FALSE(worker.tail.lines_before);
}

TEST_CASE(
    "thousands of failures and rounds make no giant of failure.json, and what is left out is "
    "counted") {
  JobReport report;
  std::string tail;
  while (tail.size() + 6 <= kTailBytes) tail += "12345\n";
  for (int rank = 0; rank < 4096; ++rank) {
    FailedWorker worker{.rank = rank, .exit = {.code = 1}, .stopped_by_us = rank >= 2048, .tail = {.bytes = tail}};
    report.failures.push_back(worker);
  }
  for (std::uint32_t round = 0; round < 120; ++round) report.rounds.push_back({.round = round});
  for (int rank = 0; rank < 30; ++rank) report.rounds.back().failures.push_back(report.failures[0]);
  const std::string text = failure_json(report);
  CHECK(text.size() < 20'000'000);
  const JobReport again = read(text);
  REQUIRE(again.failures.size() == 4096);
  CHECK(again.failures[15].tail.bytes == tail);
  CHECK(again.failures[16].tail.bytes.size() <= kJsonShortBytes);
  CHECK(again.failures[16].tail.bytes.starts_with("12345\n"));
  CHECK(*again.failures[16].tail.lines_before + lines_of(again.failures[16].tail.bytes).size() ==
        lines_of(tail).size());
  CHECK(again.failures[4095].tail.bytes.size() <= kJsonStoppedBytes);
  CHECK(again.rounds.size() == kJsonRounds);
  CHECK(again.rounds.front().round == 20);
  CHECK(again.rounds.back().failures.size() == kJsonFailuresOfARound);
  CHECK(text.contains("\"failures_left_out\": 14"));
  CHECK(text.contains("\"rounds_left_out\": 20"));
}

TEST_CASE("base64 of any bytes is that of RFC 4648 and reads back") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  CHECK(base64_decoded(base64(bytes)) == bytes);
  CHECK_FALSE(base64_decoded("Zg="));
  CHECK_FALSE(base64_decoded("Zg=a"));
  CHECK_FALSE(base64_decoded("Z\xff=="));
}
