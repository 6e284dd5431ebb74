#include "src/report/short_report.h"

#include <doctest/doctest.h>

#include <csignal>

#include "src/base/text.h"
#include "src/report/hang_test_support.h"

using namespace elastic;
using namespace elastic::report;

namespace {

constexpr const char* kTraceback =
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: bad label\n";

JobReport job(FailedWorker first) {
  first.host = "node1";
  first.rank = 2;
  first.local_rank = 2;
  first.pid = 4702;
  first.wall_ms = 1'795'279'603'500;
  return {.executable = "/venv/bin/python3",
          .restarts_used = 3,
          .max_restarts = 3,
          .log_directory = "/logs/none_x",
          .failures = {std::move(first)}};
}

}  // namespace

TEST_CASE("the short report says what ended the job, who failed first, by what, why, and where the logs are") {
  FailedWorker first{.exit = {.code = 1}, .tail = {.bytes = std::string("epoch 1\n") + kTraceback}};
  CHECK(short_report(job(first)) ==
        "elastic-run: error: the job failed; 3 of 3 restarts were used\n"
        "  first failure: rank 2 (local rank 2, pid 4702) exited with code 1\n"
        "    at 2026-11-21 16:46:43.500 (UTC) on node1\n"
        "    ValueError: bad label\n"
        "  log directory: /logs/none_x\n");
}

TEST_CASE("without an exception the last line of stderr is quoted; what is the evidence of the cause stands once") {
  CHECK(short_report(job({.exit = {.code = 1}, .tail = {.bytes = "epoch 1\nbye\n\n"}})).contains("\n    bye\n"));
  CHECK(short_report(job({.exit = {.code = 1}})).contains("on node1\n  log directory"));
  const std::string text = "ModuleNotFoundError: No module named 'x'";
  const std::string told = short_report(job({.exit = {.code = 1},
                                             .tail = {.bytes = "Traceback (most recent call last):\n  "
                                                               "File \"a.py\", line 1, in f\n" +
                                                               text}}));
  CHECK(told.contains("likely cause: "));
  CHECK(told.find(text) == told.rfind(text));
  CHECK(told.contains(text + "\n    Python executable: /venv/bin/python3\n"));
}

TEST_CASE("where the first failure has only lost a peer the worker that says more is named as the cause") {
  JobReport report =
      job({.exit = {.code = 1},
           .tail = {.bytes = "RuntimeError: [gloo/transport/tcp/pair.cc:1] Connection closed by peer\n"}});
  report.failures.push_back(
      {.rank = 5,
       .local_rank = 5,
       .pid = 4705,
       .exit = {.signal = SIGTERM},
       .stopped_by_us = true,
       .tail = {.bytes = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"}});
  CHECK(short_report(report).contains("  likely cause: rank 5 (local rank 5, pid 4705) "));
  CHECK(short_report(report).contains("    stderr: torch.OutOfMemoryError: CUDA out of memory"));
}

TEST_CASE("a node on which the first failure was not tells it in one line, and its own worker's that explains it") {
  JobReport report = job({.node_rank = 1, .exit = {.code = 1}, .tail = {.bytes = kTraceback}});
  report.first_failed_elsewhere = true;
  CHECK(short_report(report) ==
        "elastic-run: error: the job failed; 3 of 3 restarts were used; first failure: rank 2 (node 1, local rank 2, "
        "pid 4702) on node1 exited with code 1: ValueError: bad label; see the report of that node\n");
  report.failures[0].tail.bytes = "RuntimeError: [gloo/transport/tcp/pair.cc:1] Connection closed by peer\n";
  report.failures.push_back({.rank = 0, .exit = {.code = 1}, .tail = {.bytes = "CUDA error: out of memory\n"}});
  CHECK(short_report(report).contains("see the report of that node\n  likely cause: rank 0 "));
}

TEST_CASE("a job that was stopped or had no worker's failure is told in a line; success in none") {
  CHECK(short_report({.outcome = JobReport::Outcome::kSucceeded}).empty());
  CHECK(short_report({.outcome = JobReport::Outcome::kStopped, .reason = "stopped by SIGTERM"}) ==
        "elastic-run: stopped by SIGTERM; all workers have ended\n");
  CHECK(short_report({.reason = "node 1 was lost"}) == "elastic-run: error: node 1 was lost\n");
}

TEST_CASE("a job that hung when it ended says by what, and one whose hang was over does not") {
  JobReport report{
      .outcome = JobReport::Outcome::kStopped, .reason = "stopped by SIGINT", .hang = testing::full_hang()};
  CHECK(short_report(report) ==
        "elastic-run: stopped by SIGINT; all workers have ended\n"
        "  hang: no progress for 4 min 10 s when it was told: rank 5 (node gpu-2) is not in the collective\n"
        "    that others wait in\n");
  report.hang->end = HangEnd::kRecovered;
  CHECK(short_report(report) == "elastic-run: stopped by SIGINT; all workers have ended\n");
  report = job({.exit = {.code = 1}});
  report.hang = testing::full_hang();
  CHECK(short_report(report).contains("\n  hang: no progress for 4 min 10 s"));
  CHECK(short_report(report).ends_with("\n  log directory: /logs/none_x\n"));
  report.hang->cause = std::string(100'000, 'x');
  CHECK(short_report(report).size() <= kShortReportBytes);
}

TEST_CASE("whatever workers and hosts are called and write, the short report has at most 2,048 bytes") {
  const std::string much(100'000, 'x');
  JobReport report = job({.exit = {.signal = SIGKILL},
                          .oom_evidence = "oom_kill " + much,
                          .tail = {.bytes = "Traceback (most recent call last):\n  File \"a\"\nValueError: " + much}});
  report.reason = much;
  report.log_directory = "/" + much;
  report.hang = Hang{.cause = much};
  report.failures[0].host = much;
  CHECK(short_report(report).size() <= kShortReportBytes);
  CHECK(short_report(report).contains("likely cause: the kernel killed it"));
  report.failures[0].oom_evidence.clear();
  report.failures[0].timer =
      ExpiredTimer{.scope = much, .late_ms = 1'000'000'000, .signal = SIGKILL, .stack = {{much, much, 1}}};
  CHECK(short_report(report).size() <= kShortReportBytes);
  CHECK(short_report(report).contains("likely cause: the timer '"));
  report.first_failed_elsewhere = true;
  CHECK(short_report(report).size() <= kShortReportBytes);
  report.outcome = JobReport::Outcome::kStopped;
  report.left_behind = much;
  CHECK(short_report(report).size() <= kShortReportBytes);
}
