#include "src/report/html.h"

#include <doctest/doctest.h>

#include <csignal>

#include "src/base/html_test_support.h"
#include "src/base/screen_text.h"

using namespace elastic;
using namespace elastic::report;
using namespace std::string_literals;

namespace {

constexpr std::int64_t kTime = 1'795'279'603'500;

JobReport report_of_two_nodes() {
  JobReport report{.version = "0.1.0",
                   .run_id = "job",
                   .title = "train.py",
                   .program = "python3 train.py",
                   .restarts_used = 1,
                   .max_restarts = 3,
                   .log_directory = "/logs/job_x"};
  for (int node = 0; node < 2; ++node) {
    for (std::uint32_t round = 0; round < 2; ++round) {
      const std::int64_t began = kTime - 20'000 + round * 10'000;
      report.rounds.push_back({.round = round,
                               .restart_count = static_cast<int>(round),
                               .node_rank = node,
                               .host = "node" + std::to_string(node),
                               .began_ms = began,
                               .ended_ms = began + 9'000,
                               .first_rank = node * 8,
                               .rank_count = 8});
    }
  }
  report.failures = {{.host = "node1",
                      .node_rank = 1,
                      .rank = 9,
                      .local_rank = 1,
                      .pid = 4711,
                      .exit = {.signal = SIGSEGV},
                      .wall_ms = kTime,
                      .tail = {.bytes = "Fatal Python error: Segmentation fault\n"}},
                     {.host = "node0",
                      .rank = 0,
                      .pid = 4712,
                      .exit = {.signal = SIGTERM},
                      .wall_ms = kTime + 5,
                      .stopped_by_us = true}};
  return report;
}

}  // namespace

TEST_CASE(
    "the page has the first failure with its cause, a time line of all nodes and every rank's "
    "exit") {
  const std::string page = html_page(report_of_two_nodes());
  CHECK(page.starts_with("<!DOCTYPE html>\n"));
  CHECK(page.contains("<title>train.py failed</title>"));
  CHECK(page.contains("<b>rank 9 (node 1, local rank 1, pid 4711) was killed by SIGSEGV</b>"));
  CHECK(page.contains("stderr: Fatal Python error: Segmentation fault"));
  CHECK(count(page, "<rect class=\"round") == 4);
  CHECK(count(page, "<circle class=\"failed\"") == 1);
  CHECK(count(page, "<circle class=\"stopped\"") == 1);
  CHECK(page.contains("<title>round 1, restart count 1, ranks 8-15, 9.000 s</title>"));
  CHECK(page.contains(">node 0 node0</text>"));
  CHECK(page.contains("<td>was killed by SIGTERM</td>"));
  CHECK(page.contains("<details><summary>stderr</summary><pre>Fatal Python error"));
  CHECK(balanced(page));
}

TEST_CASE("the page needs nothing from elsewhere and runs nothing") {
  const std::string page = html_page(report_of_two_nodes());
  CHECK(foreign_part(page).empty());
  CHECK(page.contains("default-src 'none'"));
}

TEST_CASE("no text of a job can break out of its place on the page") {
  const std::string evil = "</pre></script><script>alert('1')</script>\" onload=\"x\" & \x1b[2J\x07\xff\0"s;
  JobReport report = report_of_two_nodes();
  report.title = report.run_id = report.program = report.reason = report.log_directory = evil;
  report.left_behind = report.version = evil;
  for (RoundReport& round : report.rounds) round.host = round.reason = evil;
  report.rounds[0].failures = report.failures;
  report.outcome = JobReport::Outcome::kFailed;
  for (FailedWorker& worker : report.failures) {
    worker.host = worker.error_file = worker.error_file_problem = worker.oom_evidence = evil;
    worker.timer = ExpiredTimer{.scope = evil, .stack = {{.function = evil, .file = evil}}, .problem = evil};
    worker.kernel_log = worker.core_file = worker.tail.source = evil;
    worker.error = ErrorFile{.message = evil, .traceback = evil};
    worker.tail.bytes = evil;
  }
  const std::string page = html_page(report);
  CHECK_FALSE(page.contains("<script"));
  CHECK_FALSE(page.contains("</script"));
  CHECK_FALSE(page.contains("onload=\""));
  CHECK(
      page.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x&quot; "
                    "&amp; \\x07\\xff"));
  CHECK(is_utf8(page));
  for (const char c : page) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'));
  CHECK(balanced(page));
}

TEST_CASE("times that nobody knows leave the time line out instead of stretching it") {
  JobReport report = report_of_two_nodes();
  report.rounds[3].began_ms = 0;
  CHECK(count(html_page(report), "<rect class=\"round") == 3);
  CHECK(html_page(report).contains("(after 20.0 s)"));
  report.rounds.clear();
  for (FailedWorker& worker : report.failures) worker.wall_ms = 0;
  CHECK_FALSE(html_page(report).contains("<svg"));
  CHECK(html_page({}).contains("<title> failed</title>"));
}

TEST_CASE("a page of thousands of nodes and ranks has bounded rows, bars and marks") {
  JobReport report{.title = "x"};
  for (int node = 0; node < 1000; ++node) {
    report.rounds.push_back({.node_rank = node, .began_ms = kTime, .ended_ms = kTime + 1000});
    report.failures.push_back({.node_rank = node, .rank = node, .exit = {.code = 1}, .wall_ms = kTime + node % 7});
  }
  for (std::uint32_t i = 0; i < 1000; ++i)
    report.rounds.push_back({.round = i, .began_ms = kTime, .ended_ms = kTime + 1000});
  const std::string page = html_page(report);
  CHECK(count(page, "<text x=\"0\"") == kPageNodes);
  CHECK(count(page, "<rect") <= kPageNodes + kPageRoundsOfNode);
  CHECK(page.contains("At most 256 nodes are drawn."));
  CHECK(page.size() < 2'000'000);
}
