#include "src/report/summary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "src/base/text.h"
#include "src/report/short_report.h"

using namespace elastic;
using namespace elastic::report;

namespace {

constexpr std::int64_t kTime = 1'795'279'603'500;  // 2026-11-21 16:46:43.500 UTC

FailedWorker worker(int rank, ExitStatus exit, std::int64_t later_ms = 0) {
  return {.host = "node1.example.com",
          .rank = rank,
          .local_rank = rank,
          .pid = 4700 + rank,
          .exit = exit,
          .wall_ms = kTime + later_ms,
          .tail = {.none_because = "it went to a terminal"}};
}

FailedWorker stopped(int rank) {
  FailedWorker out = worker(rank, {.signal = SIGTERM}, 10);
  out.stopped_by_us = true;
  return out;
}

// The part between torchrun's block and the short report.
std::string details(const JobReport& report) {
  const std::string summary = failure_summary(report);
  const std::string block = torchrun_block(report) + "\n";
  const std::string last = "\n" + short_report(report);
  REQUIRE(summary.starts_with(block));
  REQUIRE(summary.ends_with(last));
  return summary.substr(block.size(), summary.size() - block.size() - last.size());
}

}  // namespace

TEST_CASE(
    "the summary has torchrun's block, what is left of the first failure, what followed, and at the end the short "
    "report") {
  FailedWorker first = worker(2, {.signal = SIGKILL});
  first.oom_evidence = "memory.events of /job: oom_kill 0 -> 1";
  first.core_file = "none: core_pattern is empty";
  first.tail = {.bytes = "loading\nepoch 1\n", .source = "/logs/none_x/attempt_3/2/stderr.log"};
  const JobReport report{.title = "train.py",
                         .restarts_used = 3,
                         .max_restarts = 3,
                         .log_directory = "/logs/none_x",
                         .failures = {first, worker(0, {.code = 1}, 412), stopped(1), stopped(3), stopped(4)}};
  CHECK(details(report) ==
        "elastic-run: the first failure, rank 2 (local rank 2, pid 4702):\n"
        "  core: none: core_pattern is empty\n"
        "  its last 2 lines of stderr (from /logs/none_x/attempt_3/2/stderr.log):\n"
        "    loading\n"
        "    epoch 1\n"
        "  error file: none (decorate the script's main function with torch's @record to get one)\n"
        "  also failed:   rank 0 (local rank 0, pid 4700) exited with code 1, 0.412 s later\n"
        "  stopped because of this: ranks 1, 3-4\n");
}

TEST_CASE("where a worker stood when its timer expired is shown, and that this was its end") {
  FailedWorker first = worker(2, {.signal = SIGKILL});
  first.timer = ExpiredTimer{.scope = "load",
                             .late_ms = 104,
                             .signal = SIGKILL,
                             .pid = first.pid,
                             .stack = {{.function = "load_batch", .file = "/job/train.py", .line = 12},
                                       {.function = "<module>", .file = "/job/train\x1b.py", .line = 30}}};
  const JobReport report{.title = "train.py", .failures = {first}};
  CHECK(
      details(report).contains("  Python stack when its timer expired (newest call first):\n"
                               "    load_batch  /job/train.py:12\n"
                               "    <module>  /job/train\\x1b.py:30\n"));
  const std::string last = short_report(report);
  CHECK(last.contains("first failure: rank 2 (local rank 2, pid 4702) was killed by SIGKILL (its timer expired)\n"));
  CHECK(last.contains("likely cause: its timer 'load' expired (file timer)"));
  CHECK(last.contains("    Python stack: at load_batch train.py:12\n"));
}

TEST_CASE("a worker that was started warm is said to be one") {
  FailedWorker first = worker(0, {.code = 1});
  first.start = WorkerStart::kWarm;
  CHECK(details({.title = "x", .failures = {first}})
            .contains("  it was started warm (--warm-workers=off starts fresh interpreters only)\n"));
}

TEST_CASE("the traceback of error.json is shown, and stderr only where it says something else") {
  constexpr std::string_view kTraceback =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: bad label\n";
  FailedWorker first = worker(0, {.code = 1});
  first.error_file = "/logs/error.json";
  first.error = ErrorFile{.message = "ValueError: bad label", .traceback = std::string(kTraceback)};
  first.tail = {.bytes = "epoch 1\n[rank0]: " + replace_all(std::string(kTraceback), "\n", "\n[rank0]: ")};
  CHECK(details({.title = "x", .failures = {first}}) ==
        "elastic-run: the first failure, rank 0 (local rank 0, pid 4700):\n"
        "  Python traceback (error.json):\n"
        "    Traceback (most recent call last):\n"
        "      File \"a.py\", line 1, in f\n"
        "    ValueError: bad label\n"
        "  stderr after the traceback:\n"
        "    [rank0]: \n"
        "  error file: /logs/error.json\n");
  first.tail.bytes = "something else\n";
  CHECK(details({.title = "x", .failures = {first}})
            .contains("    ValueError: bad label\n  its last 1 line of stderr:\n    something else\n"));
}

TEST_CASE("without an error.json the traceback is taken from stderr, with what followed it") {
  FailedWorker first = worker(0, {.code = 1});
  first.tail = {.bytes =
                    "epoch 1\nTraceback (most recent call last):\n  File \"a.py\", line 1, in "
                    "f\nValueError: bad "
                    "label\n\nresource_tracker: leaked\n"};
  CHECK(details({.title = "x", .failures = {first}})
            .contains("  Python traceback (stderr):\n"
                      "    Traceback (most recent call last):\n"
                      "      File \"a.py\", line 1, in f\n"
                      "    ValueError: bad label\n"
                      "  stderr after the traceback:\n"
                      "    resource_tracker: leaked\n"
                      "  error file: none"));
}

TEST_CASE("a traceback that Python has coloured for a terminal is shown without colours") {
  FailedWorker first = worker(0, {.code = 1});
  first.tail = {.bytes =
                    "Traceback (most recent call last):\r\n  File \x1b[35m\"a.py\"\x1b[0m, line 1\r\n"
                    "\x1b[1;35mValueError\x1b[0m: \x1b[35mbad\x1b[0m\r\n"};
  CHECK(details({.title = "x", .failures = {first}})
            .contains("  Python traceback (stderr):\n    Traceback (most recent call last):\n      "
                      "File \"a.py\", line 1\n"
                      "    ValueError: bad\n  error file"));
}

TEST_CASE("the last 20 lines of stderr say how many lines stand before them") {
  FailedWorker first = worker(0, {.code = 1});
  first.tail = {.lines_before = 100};
  for (int i = 1; i <= 51; ++i) first.tail.bytes += format("line {}\n", i);
  const auto summary = [&] { return details({.title = "x", .failures = {first}}); };
  CHECK(summary().contains("  its last 20 lines of stderr (131 earlier lines left out):\n    line 32\n    line 33\n"));
  CHECK(summary().contains("    line 51\n  error file"));
  first.tail.lines_before.reset();
  CHECK(summary().contains("(at least 31 earlier lines left out)"));
  first.tail.bytes = "only\n";
  CHECK(summary().contains("(there may be earlier lines)"));
}

TEST_CASE("a worker's stderr can hold anything: UTF-8 and tabs stay, the terminal is not touched") {
  FailedWorker first = worker(0, {.code = 1});
  first.tail = {.bytes = "ü\tx\x1b[31m\x1b]0;t\x07\xff\n" + std::string(5000, 'x') + "\n"};
  const std::string summary = details({.title = "x", .failures = {first}});
  CHECK(summary.contains("    ü\tx\\x1b]0;t\\x07\\xff\n    xxx"));
  CHECK(summary.contains("xxx... (3000 bytes more)\n"));
  CHECK_FALSE(summary.contains('\x1b'));
}

TEST_CASE("a worker without words says why there are none") {
  FailedWorker first = worker(0, {.code = 1});
  CHECK(details({.title = "x", .failures = {first}}).contains("\n  stderr was not kept: it went to a terminal\n"));
  first.tail = {};
  CHECK(details({.title = "x", .failures = {first}}).contains("\n  it wrote nothing to stderr\n"));
}

TEST_CASE("an error file on another host is named with that host") {
  FailedWorker first = worker(0, {.code = 1});
  first.host = "node1";
  first.error_file = "/logs/error.json";
  CHECK(details({.title = "x", .host = "node0", .failures = {first}})
            .contains("  error file on node1: /logs/error.json\n"));
  CHECK(details({.title = "x", .host = "node1", .failures = {first}}).contains("  error file: /logs/error.json\n"));
}

TEST_CASE("an error file that could not be understood is named with the reason") {
  FailedWorker first = worker(0, {.code = 1});
  first.error_file = "/logs/error.json";
  first.error_file_problem = "it is empty";
  CHECK(details({.title = "x", .failures = {first}})
            .contains("  error file: /logs/error.json\n    it cannot be read: it is empty\n"));
}

TEST_CASE("a process of the worker that was killed for memory is told apart from the worker itself") {
  FailedWorker first = worker(0, {.code = 1});
  first.oom_evidence = "oom_kill 0 -> 1";
  CHECK(failure_summary({.title = "x", .failures = {first}})
            .contains("exited with code 1; one of its processes was killed (out of memory)\n"));
}

TEST_CASE("the failures of earlier rounds are named, the last five of them") {
  JobReport report{.title = "x", .failures = {worker(0, {.code = 1})}};
  for (std::uint32_t i = 0; i < 7; ++i)
    report.rounds.push_back({.round = i, .failures = {worker(3, {.signal = SIGKILL})}});
  report.rounds.push_back({.round = 7});
  const std::string summary = details(report);
  CHECK_FALSE(summary.contains("in round 1:"));
  CHECK(summary.contains("  earlier, in round 2: rank 3 (local rank 3, pid 4703) was killed by SIGKILL\n"));
  CHECK(
      summary.contains("  earlier, in round 6: rank 3 (local rank 3, pid 4703) was killed by SIGKILL\n"
                       "  and in 2 earlier rounds\n"));
}

TEST_CASE("4,096 ranks do not flood the screen, whether they failed or were stopped") {
  JobReport report{.title = "x"};
  for (int rank = 0; rank < 4096; ++rank) {
    report.failures.push_back(rank % 2 == 0 ? worker(rank, {.code = 1}, rank) : stopped(rank));
    report.failures.back().tail = {.bytes = std::string(500, '\n')};
  }
  const std::string summary = failure_summary(report);
  CHECK(split(summary, '\n').size() < 320);
  CHECK(summary.size() < 20'000);
  CHECK(
      summary.contains("  also failed:   rank 32 (local rank 32, pid 4732) exited with code 1, 0.032 s later\n"
                       "  and 2031 more failed: ranks 34, 36, "));
  CHECK(summary.contains("... (2031 in all)\n"));
  CHECK(summary.contains("stopped because of this: ranks 1, 3, "));
  for (FailedWorker& failed : report.failures) failed.stopped_by_us = failed.rank != 0;
  CHECK(failure_summary(report).contains("\n  stopped because of this: ranks 1-4095\n"));
}

TEST_CASE("the cause is the last thing on the screen, and no line of ours is longer than 98 columns") {
  FailedWorker first = worker(0, {.signal = SIGSEGV});
  const std::string summary =
      failure_summary({.title = "x", .left_behind = "process 7 (x, state D)", .failures = {first, stopped(1)}});
  CHECK(summary.find("received by PID 4700\n" + std::string(54, '=') + "\n") < summary.find("elastic-run: "));
  CHECK(summary.substr(summary.rfind("  likely cause: ")).starts_with("  likely cause: it accessed invalid memory"));
  CHECK(summary.contains("  did not exit after SIGKILL: process 7 (x, state D)\n"));
  for (const std::string& line : split(summary, '\n')) CHECK(line.size() <= 98);
}

TEST_CASE("what is left of a worker that explains the first failure is shown, too") {
  FailedWorker victim = worker(0, {.code = 1});
  victim.tail = {.bytes = "RuntimeError: [gloo/transport/tcp/pair.cc:1] Connection closed by peer\n"};
  FailedWorker cause = stopped(3);
  cause.tail = {.bytes = "torch.OutOfMemoryError: CUDA out of memory\n"};
  CHECK(details({.title = "x", .failures = {victim, cause}})
            .contains("elastic-run: the likely cause, rank 3 (local rank 3, pid 4703):\n"
                      "  its last 1 line of stderr:\n    torch.OutOfMemoryError: CUDA out of memory\n"));
}

TEST_CASE("a job without a worker's failure is told in a line or two, without a block") {
  CHECK(failure_summary({.outcome = JobReport::Outcome::kSucceeded}).empty());
  CHECK(failure_summary({.reason = "cannot execute x"}) == "elastic-run: error: cannot execute x\n");
  CHECK(failure_summary({.outcome = JobReport::Outcome::kStopped,
                         .reason = "stopped by SIGTERM",
                         .log_directory = "/logs",
                         .failures = {stopped(1)}}) == "elastic-run: stopped by SIGTERM; all workers have ended\n");
  CHECK(failure_summary({.outcome = JobReport::Outcome::kStopped,
                         .reason = "stopped by SIGTERM",
                         .left_behind = "process 7 (x, state D)"}) ==
        "elastic-run: stopped by SIGTERM; did not exit after SIGKILL: process 7 (x, state D)\n");
  CHECK(failure_summary({.reason = "node 1 cannot run", .failures = {stopped(1), stopped(2)}}) ==
        "  stopped because of this: ranks 1-2\nelastic-run: error: node 1 cannot run\n");
}
