// How the job ends for a node: by the coordinator's job result, or without one.
#include <csignal>
#include <utility>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/text.h"

namespace elastic::agent {

using namespace protocol;

using Cause = SignalWorkers::Cause;

void Lifecycle::hear_result(const JobResult& job_result, Effects& out) {
  if (settings_.shares_details && round_.is_cause_of(job_result)) details_.want();
  if (!details_.are_missing()) out.push_back(ToCoordinator{JobResultHeard{details_.own()}});
  job_result_ = job_result;
  // A job result that only answers this node's leaving is of no use to other nodes.
  const bool leaves = leaving_.has_come() && !settings_.hosts_coordinator;
  if (leaves && job_result_->outcome == JobResult::Outcome::kStopped) dismissed_ = true;
}

void Lifecycle::hear_result_again(const EndJob& message, Effects& out) {
  if (message.job_result.round > job_result_->round) {
    // The job has gone on without this node, under a coordinator that did not know its job result.
    job_result_ = message.job_result;
    details_.superseded();
  }
  if (!details_.are_missing()) out.push_back(ToCoordinator{JobResultHeard{details_.own()}});
}

void Lifecycle::end_idle(const EndJob& message, Effects& out) {
  hear_result(message.job_result, out);
  state_ = State::kEnding;
  nothing_left_ = true;
  if (!dismissed_) details_.gather(out);
  finish_if_done(out);
}

void Lifecycle::end_round(const EndJob& message, Effects& out) {
  hear_result(message.job_result, out);
  state_ = State::kEnding;
  kill_ladder(SIGTERM, Cause::kOthersOrder, out);
}

void Lifecycle::end_succeeded(const EndJob& message, Effects& out) {
  if (message.job_result.outcome != JobResult::Outcome::kSucceeded) return end_round(message, out);
  hear_result(message.job_result, out);
  end_well(out);
}

void Lifecycle::end_stopping(const EndJob& message, Effects& out) {
  hear_result(message.job_result, out);
  state_ = State::kEnding;
  stop_spared(SIGTERM, Cause::kOthersOrder, out);
}

void Lifecycle::end(JobResult job_result, Effects& out) {
  if (!job_result_) job_result_ = std::move(job_result);
  dismissed_ = true;
  if (is_idle()) nothing_left_ = true;
  state_ = State::kEnding;
  finish_if_done(out);
}

void Lifecycle::be_rejected_idle(const Rejected& message, Effects& out) {
  if (waits_to_leave()) return depart(out);
  if (message.why != Rejected::Why::kRoundWentOn) end_rejected(message, out);
}

void Lifecycle::be_rejected_in_round(const Rejected& message, Effects& out) {
  if (waits_to_leave()) return depart(out);
  if (message.why == Rejected::Why::kRoundWentOn) {
    out.push_back(Warn{format("the job continued without this node; killing its workers of round {}", round_.number()),
                       "round_went_on"});
    return kill_round(out);
  }
  // A node that is to come again later is out of its round, too, and joins with no process of that left.
  kill_round(out);
  end_rejected(message, out);
}

void Lifecycle::end_rejected(const Rejected& message, Effects& out) {
  if (message.retry_ms) return;
  end({.outcome = JobResult::Outcome::kFailed,
       .reason = message.reason,
       .round = round_.number(),
       .is_unhealthy = message.why == Rejected::Why::kEvicted},
      out);
}

// A coordinator that rejects this node does not need its job result.
void Lifecycle::be_rejected_ending(const Rejected&, Effects& out) {
  dismissed_ = true;
  if (!nothing_left_ && awaits_ != Awaits::kBackground) kill_round(out);
  finish_if_done(out);
}

void Lifecycle::leave_unasked(Effects& out) {
  if (!away_ || !is_idle() || !leaving_.has_come()) return;
  if (away_->votes_for_ms) return out.push_back(StartTimer{*away_->votes_for_ms});
  end(stopped_by_order(), out);
}

JobResult Lifecycle::stopped_by_order() const {
  return {.outcome = JobResult::Outcome::kStopped,
          .reason = leaving_.reason(),
          .round = round_.number(),
          .restarts_used = round_.order().restart_count,
          .signal = leaving_.signal()};
}

void Lifecycle::end_well(Effects& out) {
  state_ = State::kEnding;
  if (settings_.leave_background) {
    out.push_back(LeaveBackground{});
    return gone(out);
  }
  out.push_back(StopTimer{});
  out.push_back(FindBackground{});
  awaits_ = Awaits::kBackground;
}

void Lifecycle::background_found(const BackgroundFound& event, Effects& out) {
  if (awaits_ != Awaits::kBackground) return;
  awaits_ = Awaits::kNothing;
  if (!event.text.empty()) {
    out.push_back(Warn{format("all workers succeeded; killing the processes they left running: {} "
                              "(--leave-background keeps them)",
                              event.text),
                       "background_ended"});
  }
  kill_ladder(SIGTERM, Cause::kOthersOrder, out);
}

bool Lifecycle::waits_in_barrier() const {
  // Workers of other nodes need the round's store and a coordinator until the last of them is done.
  const bool is_needed =
      round_.place().node_rank == 0 || (settings_.hosts_coordinator && !settings_.coordinator_may_move);
  return round_.place().node_count > 1 && !is_needed;
}

void Lifecycle::barrier_is_over(Effects& out) {
  if (departure_ == Departure::kNot) departure_ = Departure::kWanted;
  ask_to_leave(out);
  if (!settings_.coordinator_may_move) depart(out);
}

void Lifecycle::ask_to_leave(Effects& out) {
  // A coordinator in this process transfers its leadership, if it can, or lets the node wait.
  constexpr std::int64_t kAskAgainMs = 5000;
  if (settings_.hosts_coordinator) {
    out.push_back(StartTimer{kAskAgainMs});
  } else if (std::exchange(departure_, Departure::kLogged) != Departure::kLogged) {
    out.push_back(Warn{format("the other nodes did not finish within {} s after this node's workers "
                              "succeeded; leaving the job",
                              settings_.exit_barrier_ms / 1000),
                       "exit_barrier"});
  }
  out.push_back(ToCoordinator{NodeLeaves{}});
}

void Lifecycle::depart(Effects& out) {
  JobResult own{.outcome = JobResult::Outcome::kSucceeded,
                .round = round_.number(),
                .restarts_used = round_.order().restart_count};
  if (!runs_or_succeeded() || runs_workers()) return end(std::move(own), out);
  job_result_ = std::move(own);
  dismissed_ = true;
  end_well(out);
}

void Lifecycle::give_up(const GivenUp& event, Effects& out) {
  if (waits_to_leave()) return depart(out);
  end(leaving_.has_come() ? stopped_by_order()
                          : JobResult{.outcome = JobResult::Outcome::kFailed,
                                      .reason = event.reason,
                                      .round = round_.number(),
                                      .restarts_used = round_.order().restart_count},
      out);
}

void Lifecycle::give_up_round(const GivenUp& event, Effects& out) {
  if (!waits_to_leave()) kill_round(out);
  give_up(event, out);
}

void Lifecycle::guardian_lost(const GuardianLost& event, Effects& out) {
  job_result_ = JobResult{.outcome = JobResult::Outcome::kFailed,
                          .reason = format("parent process{} was killed; all workers were killed",
                                           event.parent == 0 ? "" : format(" {}", event.parent)),
                          .round = round_.number()};
  dismissed_ = true;
  nothing_left_ = false;
  details_.drop();
  if (awaits_ == Awaits::kBackground) awaits_ = Awaits::kNothing;
  state_ = State::kEnding;
  // If another node can become the coordinator, it does so as if this node had died, and the job goes on.
  ends_with_guardian_ = settings_.hosts_coordinator && !settings_.coordinator_may_move && settings_.terms.max_nodes > 1;
  // The coordinator stays until the other nodes have been told why the job ends.
  if (ends_with_guardian_) out.push_back(ToCoordinator{NodeLeaves{SIGKILL}});
  kill_ladder_.kill(out);
  out.push_back(AwaitAllGone{});
}

void Lifecycle::be_dismissed(const Dismiss& message, Effects& out) {
  if (waits_to_leave()) return depart(out);
  dismissed_ = true;
  details_.heard_text(message.details);
  finish_if_done(out);
}

void Lifecycle::finish_if_done(Effects& out) {
  if (!job_result_ || !nothing_left_ || !dismissed_) return;
  if (details_.are_being_gathered()) out.push_back(StopTimer{});
  details_.drop();
  state_ = State::kEnded;
  job_result_->left_behind = kill_ladder_.left_behind();
  out.push_back(Finish{*job_result_, details_.for_report()});
}

}  // namespace elastic::agent
