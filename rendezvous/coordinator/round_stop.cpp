#include "rendezvous/coordinator/round_stop.h"

#include <algorithm>
#include <csignal>

#include "rendezvous/coordinator/limits.h"
#include "src/base/exit_status.h"
#include "src/base/program_name.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using protocol::JobResult;
using protocol::WorkerFailure;

namespace {

// Keeps the first failures, and in any case one that forbids to start the job again.
void keep_first(std::vector<WorkerFailure>& failures) {
  if (failures.size() <= limits::kFailuresKept) return;
  const auto end = failures.begin() + static_cast<std::ptrdiff_t>(limits::kFailuresKept);
  const auto final_one =
      std::find_if(end, failures.end(), [](const WorkerFailure& failure) { return failure.is_final(); });
  if (final_one != failures.end()) std::iter_swap(end - 1, final_one);
  failures.resize(limits::kFailuresKept);
}

std::string names_of(const std::vector<LostNode>& lost) {
  std::vector<std::string> names;
  for (const LostNode& node : lost) names.push_back(text(node));
  return some_of(names);
}

// The round was stopped for an error file, and its worker has not failed. Failures elsewhere may be a consequence of
// the stop, but an exit code that forbids another round holds in any case.
bool is_false_alarm(const RoundStop& stop) {
  return stop.false_alarm && std::ranges::none_of(stop.failures, &WorkerFailure::is_final);
}

// The failures for which the round ended. Those after a stop that had another reason are a consequence of the stop, and
// are not counted.
std::vector<status::Failure> counted_failures(const RoundStop& stop, bool is_check_only) {
  std::vector<status::Failure> counted;
  for (const LostNode& lost : stop.lost) {
    counted.push_back(
        {.cause = RoundCause::kNodeLost, .node = lost.address, .node_rank = lost.node_rank, .text = text(lost)});
  }
  if (!stop.hang.empty()) {
    counted.push_back({.cause = RoundCause::kHang, .text = stop.hang});
    return counted;
  }
  if (!stop.lost.empty() || !stop.left.empty() || !stop.other.empty() || is_false_alarm(stop)) return counted;
  if (stop.job_ends && stop.outcome != Outcome::kFailed) return counted;
  const RoundCause cause = is_check_only ? RoundCause::kCheck : RoundCause::kWorkerFailure;
  const auto first = std::ranges::find(stop.failures, false, &WorkerFailure::stopped_by_us);
  if (first != stop.failures.end()) {
    counted.push_back({.cause = cause,
                       .node = first->host,
                       .node_rank = first->node_rank,
                       .rank = first->rank,
                       .text = first->text()});
  } else if (!stop.fatal.empty()) {
    counted.push_back({.cause = cause, .text = stop.fatal});
  }
  return counted;
}

// The crash of the node where the first worker failed is that of the attempt.
std::optional<protocol::Crash> first_crash(const RoundStop& stop) {
  if (stop.failures.empty() || stop.failures.front().stopped_by_us) return {};
  const auto found =
      std::ranges::find(stop.crashes, stop.failures.front().node_rank, &std::pair<int, protocol::Crash>::first);
  if (found == stop.crashes.end()) return {};
  return found->second;
}

// Why there is another round; without `charged`.
Again why_again(const RoundStop& stop) {
  // The hang came first: a node whose workers cannot be ended is lost for it.
  if (!stop.hang.empty()) return {.because = stop.hang, .cause = RoundCause::kHang};
  if (!stop.lost.empty()) return {names_of(stop.lost), RoundCause::kNodeLost};
  if (!stop.left.empty()) return {some_of(stop.left), RoundCause::kMembershipChange};
  // Nothing had failed when the stop was ordered. Later failures are a consequence of it: nodes get the order one after
  // the other, and workers whose peers are gone fail within milliseconds.
  if (!stop.other.empty()) return {stop.other, stop.by_check ? RoundCause::kCheck : RoundCause::kMembershipChange};
  if (is_false_alarm(stop)) {
    return {format("rank {} wrote an error file, but did not fail: the other ranks were stopped too early, which does "
                   "not happen again in this job",
                   *stop.false_alarm),
            RoundCause::kFalseAlarm};
  }
  if (!stop.worker_failed) {
    return {"the coordinator was lost while the round was beginning or ending", RoundCause::kCoordinatorLost};
  }
  return {stop.failures.empty() ? "a worker failed" : stop.failures.front().text(), RoundCause::kWorkerFailure};
}

// How the job ends, where a worker has failed by itself; empty if a restart could be spent.
std::optional<JobResult> charge_restart(const RoundStop& stop, const StoppedRound& round, JobBudgets& budgets) {
  if (std::ranges::any_of(stop.failures, &WorkerFailure::is_final)) {
    return JobResult{.outcome = Outcome::kFailed,
                     .reason = format("a worker has ended with {}: the job is not to be started again", kDoNotRequeue)};
  }
  const std::optional<protocol::Crash> crash = first_crash(stop);
  const int attempt = budgets.restarts.used();
  const std::optional<int> before = budgets.crash_loop.failed(crash, attempt);
  if (before && round.crash_loop == protocol::JobRules::CrashLoop::kStop) {
    return JobResult{.outcome = Outcome::kFailed,
                     .reason = text_of_crash_loop(crash->kind, *before, attempt),
                     .is_deterministic = true};
  }
  if (!budgets.restarts.spend()) return JobResult{.outcome = Outcome::kFailed};
  return {};
}

// How the job ends after a round that failed; empty if another round follows.
std::optional<JobResult> end_after(const RoundStop& stop, const StoppedRound& round, const Again& again,
                                   JobBudgets& budgets) {
  if (again.cause == RoundCause::kNodeLost && budgets.losses.spent()) {
    return JobResult{.outcome = Outcome::kFailed,
                     .reason = format("{}; the job has lost {} nodes, more than job_losses allows", again.because,
                                      budgets.losses.losses())};
  }
  if (again.cause == RoundCause::kWorkerFailure) return charge_restart(stop, round, budgets);
  if (round.has_run) budgets.crash_loop.interrupted();
  return {};
}

}  // namespace

void RoundStop::fails(std::string reason) {
  if (job_ends) return;
  job_ends = true;
  fatal = std::move(reason);
}

void RoundStop::host_leaves(const std::string& node, const protocol::NodeLeaves& leaves) {
  job_ends = true;
  if (leaves.signal == SIGKILL) {
    outcome = Outcome::kFailed;
    signal = 0;
    fatal =
        format("{}: {}", node, in_our_name("its outer elastic-run process was killed, and the coordinator with it"));
    return;
  }
  outcome = Outcome::kStopped;
  signal = leaves.signal;
  fatal = leaves.by_scheduler ? format("{} was drained by the scheduler, and the coordinator stops with it", node)
                              : format("stopped by {}", signal_name(leaves.signal));
}

void RoundStop::operator_stops() {
  job_ends = true;
  outcome = Outcome::kStopped;
  signal = SIGTERM;
  fatal = "stopped by an operator";
}

void RoundStop::add_failures(const membership::Node& node, const std::vector<WorkerFailure>& more, bool names_host) {
  for (WorkerFailure failure : more) {
    failure.node_rank = node.place.node_rank;
    if (names_host) failure.host = node.address;
    if (!failure.stopped_by_us) worker_failed = true;
    failures.push_back(std::move(failure));
  }
  if (failures.size() <= 2 * limits::kFailuresKept) return;
  order_by_cause(failures, stopped_for);
  failures.resize(limits::kFailuresKept);
}

bool RoundStop::lose(const membership::Node& node, const std::string& how) {
  const bool is_first = std::ranges::none_of(
      lost, [&](const LostNode& known) { return !known.address.empty() && known.address == node.address; });
  lost.push_back({node.place.node_rank, node.address, how});
  return is_first;
}

Conclusion conclude(RoundStop stop, const StoppedRound& round, JobBudgets& budgets) {
  order_by_cause(stop.failures, stop.stopped_for);
  keep_first(stop.failures);
  Conclusion out{.counted = counted_failures(stop, round.is_check_only)};
  // Whatever the reason for the next round is: an error file could be a false alarm again.
  budgets.error_files_wait |= stop.false_alarm.has_value();
  // If all workers had succeeded before StopWorkers arrived, nothing is left to train.
  const bool has_succeeded = stop.lost.empty() && stop.left.empty() && round.all_succeeded;
  if (stop.job_ends) {
    out.job_result = stop.job_result();
    out.job_result->failures = stop.failures;
  } else if (has_succeeded) {
    out.job_result = JobResult{.outcome = Outcome::kSucceeded};
  } else {
    out.again = why_again(stop);
    out.job_result = end_after(stop, round, *out.again, budgets);
    out.again->charged = out.again->cause == RoundCause::kWorkerFailure && !out.job_result;
    if (out.job_result) out.job_result->failures = stop.failures;
  }
  out.failures = std::move(stop.failures);
  return out;
}

}  // namespace elastic::coordinator
