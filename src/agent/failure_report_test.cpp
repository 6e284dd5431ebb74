#include "src/agent/failure_report.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::protocol;
using agent::failure_report;

TEST_CASE("a failed job's report names the first failure first, with code or signal and the logs") {
  const Verdict verdict{
      .outcome = Verdict::Outcome::kFailed,
      .reason = {},
      .restarts_used = 3,
      .failures = {{.rank = 2, .local_rank = 2, .pid = 11, .exit = {.signal = 9}},
                   {.rank = 0, .local_rank = 0, .pid = 12, .exit = {.code = 1}},
                   {.rank = 1, .exit = {.signal = 15}, .stopped_by_us = true},
                   {.rank = 3, .exit = {.signal = 15}, .stopped_by_us = true}}};
  CHECK(failure_report(verdict, 3, {"/logs/none_x/attempt_3/2/error.json", "/logs/none_x"}) ==
        "elastic-run: error: the job failed; 3 of 3 restarts were used\n"
        "  first failure: rank 2 (local rank 2, pid 11) was killed by SIGKILL\n"
        "  also failed:   rank 0 (local rank 0, pid 12) exited with code 1\n"
        "  stopped because of it: ranks 1, 3\n"
        "  error file: /logs/none_x/attempt_3/2/error.json\n"
        "  log directory: /logs/none_x\n");
}

TEST_CASE("a failure that left no error file is reported with the way to get one") {
  const Verdict verdict{.outcome = Verdict::Outcome::kFailed,
                        .failures = {{.rank = 0, .pid = 11, .exit = {.code = 1}}}};
  CHECK(failure_report(verdict, 0, {}) ==
        "elastic-run: error: the job failed; --max-restarts is 0\n"
        "  first failure: rank 0 (local rank 0, pid 11) exited with code 1\n"
        "  error file: none was written (torch's @record on the script's main function writes one)\n");
}

TEST_CASE("a job that could not run says why, one that was stopped says by what, success is silent") {
  CHECK(failure_report({.outcome = Verdict::Outcome::kFailed, .reason = "cannot execute x",
                        .failures = {}}, 0, {}) == "elastic-run: error: cannot execute x\n");
  CHECK(failure_report({.outcome = Verdict::Outcome::kStopped, .reason = "stopped by SIGTERM",
                        .signal = 15, .failures = {}}, 0, {"", "/logs"}) ==
        "elastic-run: stopped by SIGTERM; all workers have ended\n");
  CHECK(failure_report({.outcome = Verdict::Outcome::kStopped, .reason = "stopped by SIGTERM", .signal = 15,
                        .failures = {}, .left_behind = "process 7 (x, state D)"}, 0, {}) ==
        "elastic-run: stopped by SIGTERM; killed and left behind: process 7 (x, state D)\n");
  CHECK(failure_report({}, 0, {}).empty());
}
