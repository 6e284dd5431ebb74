#include "src/report/summary.h"

#include <doctest/doctest.h>

#include <csignal>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::report;

namespace {

constexpr std::int64_t kTime = 1'795'279'603'500;  // 2026-11-21 16:46:43.5 UTC

FailedWorker worker(int rank, ExitStatus exit) {
  return {.host = "localhost", .rank = rank, .local_rank = rank, .pid = 7362 + rank, .exit = exit, .wall_ms = kTime};
}

}  // namespace

// This is the output of torchrun of torch 2.15.0 for three ranks of which one died of SIGSEGV and one raised an error;
// only the indices are in order of time here.
TEST_CASE("the block is what torchrun prints, byte by byte") {
  FailedWorker raised = worker(0, {.signal = SIGTERM});
  raised.stopped_by_us = true;
  raised.error_file = "/tmp/torchelastic_7nceqx1h/attempt_0/0/error.json";
  raised.error = ErrorFile{.message = "RuntimeError: boom",
                           .traceback =
                               "Traceback (most recent call last):\n"
                               "  File \"/tmp/a.py\", line 9, in main\n"
                               "    int(\"x\")\n"
                               "ValueError: invalid literal for int() with base 10: 'x'\n"
                               "\n"
                               "The above exception was the direct cause of the following exception:\n"
                               "\n"
                               "Traceback (most recent call last):\n"
                               "RuntimeError: boom ü\n",
                           .timestamp_s = 1795279602};
  FailedWorker stopped = worker(2, {.signal = SIGTERM});
  stopped.stopped_by_us = true;
  const JobReport report{.title = "a.py", .failures = {worker(1, {.signal = SIGSEGV}), raised, stopped}};
  CHECK(torchrun_block(report) ==
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "============================================================\n"
        "a.py FAILED\n"
        "------------------------------------------------------------\n"
        "Failures:\n"
        "[1]:\n"
        "  time      : 2026-11-21_16:46:42\n"
        "  host      : localhost\n"
        "  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : -15 (pid: 7362)  (SIGTERM)\n"
        "  error_file: /tmp/torchelastic_7nceqx1h/attempt_0/0/error.json\n"
        "  traceback : Traceback (most recent call last):\n"
        "    File \"/tmp/a.py\", line 9, in main\n"
        "      int(\"x\")\n"
        "  ValueError: invalid literal for int() with base 10: 'x'\n"
        "  \n"
        "  The above exception was the direct cause of the following exception:\n"
        "  \n"
        "  Traceback (most recent call last):\n"
        "  RuntimeError: boom ü\n"
        "  \n"
        "[2]:\n"
        "  time      : 2026-11-21_16:46:43\n"
        "  host      : localhost\n"
        "  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : -15 (pid: 7364)  (SIGTERM)\n"
        "  error_file: <N/A>\n"
        "  traceback : Signal 15 (SIGTERM) received by PID 7364\n"
        "------------------------------------------------------------\n"
        "Root Cause (first observed failure):\n"
        "[0]:\n"
        "  time      : 2026-11-21_16:46:43\n"
        "  host      : localhost\n"
        "  rank      : 1 (local_rank: 1)\n"
        "  exitcode  : -11 (pid: 7363)  (SIGSEGV)\n"
        "  error_file: <N/A>\n"
        "  traceback : Signal 11 (SIGSEGV) received by PID 7363\n"
        "============================================================\n");
}

// This is the output of torchrun of torch 2.15.0 for one rank that called sys.exit(3).
TEST_CASE("the block of a single failure says that there are no others and keeps the trailing blank") {
  CHECK(torchrun_block({.title = "c.py", .failures = {worker(0, {.code = 3})}}) ==
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        "============================================================\n"
        "c.py FAILED\n"
        "------------------------------------------------------------\n"
        "Failures:\n"
        "  <NO_OTHER_FAILURES>\n"
        "------------------------------------------------------------\n"
        "Root Cause (first observed failure):\n"
        "[0]:\n"
        "  time      : 2026-11-21_16:46:43\n"
        "  host      : localhost\n"
        "  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : 3 (pid: 7362) \n"
        "  error_file: <N/A>\n"
        "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
        "============================================================\n");
}

TEST_CASE("the borders are as wide as the widest line, counted in characters, and at most 60") {
  FailedWorker failed = worker(0, {.code = 1});
  failed.error = ErrorFile{.message = "ü", .plain_message = true};
  const auto width = [&](std::string title) {
    const std::string block = torchrun_block({.title = std::move(title), .failures = {failed}});
    const std::size_t border = block.find('\n') + 1;
    return block.find('\n', border) - border;
  };
  CHECK(width("a") == std::string_view("  time      : 2026-11-21_16:46:43").size());
  failed.error->message = std::string("üüüüüüüüüüüüüüüüüüüüüüüüü");  // 25 characters, 50 bytes
  CHECK(width("a") == std::string_view("  traceback : ").size() + 25);
  CHECK(width(std::string(50, 't')) == 57);
  CHECK(width(std::string(53, 't')) == 60);
  CHECK(width(std::string(90, 't')) == 60);
}

TEST_CASE("a plain message is shown as it is, a signal without a name as torchrun shows it") {
  FailedWorker plain = worker(0, {.code = 1});
  plain.error = ErrorFile{.message = "two\nlines", .plain_message = true};
  CHECK(torchrun_block({.title = "x", .failures = {plain}}).contains("  traceback : two\nlines\n==="));
  const std::string odd = torchrun_block({.title = "x", .failures = {worker(0, {.signal = 37})}});
  CHECK(odd.contains("  exitcode  : -37 (pid: 7362) \n"));
  CHECK(odd.contains("  traceback : Signal 37 (<N/A>) received by PID 7362\n"));
  CHECK(torchrun_block({.title = "x", .failures = {worker(0, {.signal = 29})}}).contains(" (SIGIO)\n"));
}

TEST_CASE("times in the block are the node's local ones") {
  CHECK(torchrun_block({.title = "x", .utc_offset_s = -3600, .failures = {worker(0, {.code = 1})}})
            .contains("  time      : 2026-11-21_15:46:43\n"));
}

TEST_CASE("an old time in an error file does not make its worker the root cause") {
  FailedWorker later = worker(1, {.code = 1});
  later.error = ErrorFile{.message = "x", .timestamp_s = 5};
  const std::string block = torchrun_block({.title = "x", .failures = {worker(0, {.code = 2}), later}});
  CHECK(block.contains("Root Cause (first observed failure):\n[0]:\n"));
  CHECK(block.contains("Failures:\n[1]:\n  time      : 1970-01-01_00:00:05\n"));
}

TEST_CASE("no worker's text can move the cursor or break out of the block") {
  FailedWorker failed = worker(0, {.code = 1});
  failed.error = ErrorFile{.traceback = "a\x1b[2Jb\rc\x07\xff"};
  failed.host = "h\nost";
  const std::string block = torchrun_block({.title = "t\x1b[1m", .failures = {failed}});
  CHECK(block.contains("  traceback : ab\\x0dc\\x07\\xff\n"));
  CHECK(block.contains("  host      : h\\x0aost\n"));
  CHECK(block.contains("t\\x1b[1m FAILED\n"));
}

TEST_CASE(
    "of a thousand failures the block shows 32, those that failed by themselves first, and counts "
    "the rest") {
  JobReport report{.title = "x"};
  for (int rank = 0; rank < 1000; ++rank) {
    report.failures.push_back(worker(rank, {.signal = SIGTERM}));
    report.failures.back().stopped_by_us = rank != 0 && rank != 999;
  }
  const std::string block = torchrun_block(report);
  CHECK(block.contains("\n[30]:\n"));
  CHECK_FALSE(block.contains("\n[31]:\n"));
  CHECK(block.contains("\n[999]:\n"));
  CHECK(block.contains("received by PID 8361\n  <968_MORE_FAILURES>\n-----"));
  CHECK(split(block, '\n').size() < 300);
}

TEST_CASE("a traceback beyond its bound loses its middle and says how much") {
  FailedWorker failed = worker(0, {.code = 1});
  failed.error = ErrorFile{.traceback = "first line\n"};
  while (failed.error->traceback.size() < 2 * kBlockRootBytes) failed.error->traceback += "  a line of it\n";
  failed.error->traceback += "Error: last";
  const std::string block = torchrun_block({.title = "x", .failures = {failed}});
  CHECK(block.size() < kBlockRootBytes * 5 / 4);
  CHECK(block.contains("  traceback : first line\n"));
  CHECK(block.contains(" bytes left out ...]\n"));
  CHECK(block.contains("\n  Error: last\n==="));
}

TEST_CASE("without a worker that failed by itself there is no block") {
  CHECK(torchrun_block({.title = "x"}).empty());
  JobReport report{.title = "x", .failures = {worker(0, {.signal = SIGTERM})}};
  report.failures[0].stopped_by_us = true;
  CHECK(torchrun_block(report).empty());
}
