#include "cli/run/final_status.h"

#include <doctest/doctest.h>

#include <csignal>
#include <vector>

#include "src/base/exit_status.h"

using namespace elastic;
using namespace elastic::run;
using protocol::JobResult;
using protocol::WorkerFailure;

namespace {

const JobResult kStopped{.outcome = JobResult::Outcome::kStopped, .signal = SIGTERM};

// The status of a node of two workers that SIGTERM has stopped.
int stopped(const std::vector<WorkerFailure>& failures, bool propagate_exit_code = true) {
  return final_status({.job_result = kStopped, .failures = failures, .local_world_size = 2}, propagate_exit_code);
}

WorkerFailure ended(ExitStatus exit, bool stopped_by_us = true) {
  return {.exit = exit, .stopped_by_us = stopped_by_us};
}

}  // namespace

TEST_CASE("a stopped job has the status with which all workers of the node have ended by themselves") {
  const WorkerFailure saved = ended({.code = 85});
  CHECK(stopped({saved, saved}) == 85);
  CHECK(stopped({saved, saved}, false) == 1);
}

TEST_CASE("where workers end in different ways, by a signal or well, a stopped job has 128 and the signal's number") {
  const WorkerFailure saved = ended({.code = 85});
  CHECK(stopped({saved, ended({.code = 3})}) == 128 + SIGTERM);
  CHECK(stopped({saved}) == 128 + SIGTERM);  // the other one has ended with 0
  CHECK(stopped({}) == 128 + SIGTERM);
  CHECK(stopped({saved, ended({.signal = SIGKILL})}) == 128 + SIGTERM);
  CHECK(stopped({ended({.signal = SIGTERM}), ended({.signal = SIGTERM})}) == 128 + SIGTERM);
}

TEST_CASE("the code of a worker that failed before the job was stopped is not the job's") {
  CHECK(stopped({ended({.code = 1}, false), ended({.code = 1})}) == 128 + SIGTERM);
}

TEST_CASE("a job that failed has 1, or the first failure's code if it is asked for") {
  const JobResult failed{.outcome = JobResult::Outcome::kFailed, .failures = {ended({.signal = SIGTERM})}};
  const report::FailedWorker first{.exit = {.code = 7}};
  CHECK(final_status({.job_result = failed, .first = &first}, true) == 7);
  CHECK(final_status({.job_result = failed, .first = &first}, false) == 1);
  CHECK(final_status({.job_result = failed}, true) == 128 + SIGTERM);
  CHECK(final_status({.job_result = {.outcome = JobResult::Outcome::kFailed}}, true) == 1);
  CHECK(final_status({.job_result = {.outcome = JobResult::Outcome::kFailed, .is_unhealthy = true}}, true) == 69);
  CHECK(final_status({.job_result = {.outcome = JobResult::Outcome::kFailed, .is_deterministic = true}}, true) == 93);
  CHECK(final_status({.job_result = {.outcome = JobResult::Outcome::kFailed, .failures = {ended({.code = 93}, false)}}},
                     false) == 93);
  CHECK(final_status({.job_result = {}}, true) == 0);
}

TEST_CASE("what is known of the place where nodes meet is said at the end where too few have come to the first round") {
  const JobResult alone{.outcome = JobResult::Outcome::kFailed,
                        .reason = "gave up after 5 s: 1 node present, 2 needed"};
  CHECK(final_reason(alone, false, "this node hosts at a") == alone.reason + "; this node hosts at a");
  CHECK(final_reason(alone, false, "") == alone.reason);
  CHECK(final_reason(alone, true, "this node hosts at a") == alone.reason);
  CHECK(final_reason(kStopped, false, "this node hosts at a") == kStopped.reason);
}
