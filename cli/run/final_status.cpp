#include "cli/run/final_status.h"

#include <algorithm>
#include <optional>

#include "rendezvous/membership/round_forming.h"
#include "src/base/exit_status.h"
#include "src/base/text.h"

namespace elastic::run {
namespace {

using protocol::JobResult;
using protocol::WorkerFailure;

// The exit code with which all workers of this node have ended by themselves when they were told to: it is meant, as
// that of a script which has saved and wants to be started again. Exit code 0 does not count, since a job that was
// stopped has not succeeded.
std::optional<int> common_code(const EndedJob& job) {
  if (job.failures.empty() || static_cast<int>(job.failures.size()) != job.local_world_size) return {};
  const int code = job.failures.front().exit.code;
  const bool is_common = std::ranges::all_of(job.failures, [code](const WorkerFailure& failure) {
    return failure.stopped_by_us && failure.exit.signal == 0 && failure.exit.code == code;
  });
  return is_common ? std::optional(code) : std::nullopt;
}

// The exit code of what ended the job, as a shell has it: that of a signal to elastic-run, or the first failure's.
int exit_code_of(const EndedJob& job) {
  const JobResult& job_result = job.job_result;
  if (job_result.is_unhealthy) return kExitUnhealthy;
  const bool is_stopped = job_result.outcome == JobResult::Outcome::kStopped;
  if (is_stopped && job_result.signal != 0) return common_code(job).value_or(kExitSignal + job_result.signal);
  if (job_result.failures.empty()) return kExitFailed;
  // The job result's first failure may have been ended by the launcher's own signal.
  const bool has_code = job.first != nullptr && job.first->exit.code != 0;
  const ExitStatus exit = has_code ? job.first->exit : job_result.failures.front().exit;
  return exit.signal != 0 ? kExitSignal + exit.signal : exit.code;
}

}  // namespace

int final_status(const EndedJob& job, bool propagate_exit_code) {
  if (job.job_result.outcome == JobResult::Outcome::kSucceeded) return 0;
  if (job.job_result.is_deterministic) return kDoNotRequeue;
  if (std::ranges::any_of(job.job_result.failures, &WorkerFailure::is_final)) return kDoNotRequeue;
  return propagate_exit_code ? exit_code_of(job) : kExitFailed;
}

std::string final_reason(const JobResult& job_result, bool has_been_in_round, const std::string& advice) {
  const bool met_nobody = !has_been_in_round && job_result.reason.starts_with(membership::kGaveUp);
  return met_nobody && !advice.empty() ? format("{}; {}", job_result.reason, advice) : job_result.reason;
}

}  // namespace elastic::run
