#include "src/report/merge.h"

#include <doctest/doctest.h>

#include "src/report/failure_json.h"

using namespace elastic;
using namespace elastic::report;

namespace {

FailedWorker failed() {
  return {.host = "node1",
          .node_rank = 1,
          .rank = 5,
          .local_rank = 1,
          .pid = 4711,
          .exit = {.code = 3},
          .error = ErrorFile{.message = "RuntimeError: boom", .traceback = "Traceback ...\nRuntimeError: boom"},
          .tail = {.bytes = "loading\nboom\n", .lines_before = 7}};
}

// The report of a node on which the worker did not run.
JobReport elsewhere() {
  FailedWorker worker = failed();
  worker.error.reset();
  worker.tail = {.none_because = "it ran on another node"};
  FailedWorker other = worker;
  other.rank = 0;
  other.node_rank = 0;
  return {.run_id = "job", .failures = {worker, other}};
}

}  // namespace

TEST_CASE("what a node tells of its worker stands in another node's report, and at that worker alone") {
  JobReport report = elsewhere();
  add_details(report, details_of(failed(), "job", 4096));
  const FailedWorker& worker = report.failures.front();
  CHECK(worker.error == failed().error);
  CHECK(worker.tail.bytes == "loading\nboom\n");
  CHECK(worker.tail.lines_before == 7U);
  CHECK(worker.tail.none_because.empty());
  CHECK(report.failures.back().tail.none_because == "it ran on another node");
}

TEST_CASE("details have the timer for which a worker was signalled, and of a long stack the newest calls") {
  FailedWorker worker = failed();
  worker.timer = ExpiredTimer{.scope = "load", .late_ms = 104, .signal = 9, .pid = 4711};
  for (int line = 1; line <= 64; ++line) worker.timer->stack.push_back({"f", std::string(200, 'x'), line});
  JobReport report = elsewhere();
  add_details(report, details_of(worker, "job", 65'536));
  CHECK(report.failures.front().timer == worker.timer);
  report = elsewhere();
  add_details(report, details_of(worker, "job", 8192));
  REQUIRE(report.failures.front().timer);
  const HangStack& stack = report.failures.front().timer->stack;
  CHECK(stack.size() > 4);
  CHECK(stack.size() < 64);
  CHECK(stack.front().line == 1);
}

TEST_CASE("why nothing was kept of its stderr is told, too") {
  FailedWorker silent = failed();
  silent.tail = {.none_because = "--stderr-tail=never"};
  JobReport report = elsewhere();
  add_details(report, details_of(silent, "job", 4096));
  CHECK(report.failures.front().tail.none_because == "--stderr-tail=never");
}

TEST_CASE("details keep to their bound, and the ends of what is long") {
  FailedWorker worker = failed();
  for (int line = 0; line < 5000; ++line) worker.tail.bytes += "line " + std::to_string(line) + " \x1b[31m\xff\n";
  worker.kernel_log = std::string(100'000, 'k');
  worker.error->traceback = std::string(100'000, 't') + "the end";
  for (const std::size_t most : {4096U, 20'000U, 65'536U}) {
    CAPTURE(most);
    const std::string details = details_of(worker, "job", most);
    CHECK(details.size() <= most);
    CHECK(details.size() > most / 4);
    JobReport report = elsewhere();
    add_details(report, details);
    const FailedWorker& told = report.failures.front();
    CHECK(told.tail.bytes.ends_with("line 4999 \x1b[31m\xff\n"));
    CHECK(!told.tail.lines_before);
    CHECK(told.error->traceback.ends_with("the end"));
  }
  CHECK(details_of(worker, "job", 10).empty());
}

TEST_CASE("what is no details of this job's worker changes nothing") {
  FailedWorker other = failed();
  other.pid = 1;
  for (const std::string& details : {std::string(), std::string("{"), std::string("[1]"),
                                     details_of(failed(), "another", 4096), details_of(other, "job", 4096)}) {
    JobReport report = elsewhere();
    add_details(report, details);
    CHECK(report.failures.front().tail.none_because == "it ran on another node");
  }
}
