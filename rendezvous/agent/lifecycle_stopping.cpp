// How the workers of a round are stopped, and what signals to elastic-run do.
#include <algorithm>
#include <csignal>
#include <utility>

#include "rendezvous/agent/lifecycle.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::agent {

using namespace protocol;

using Cause = SignalWorkers::Cause;

namespace {

// How long the agent waits for a signal before it takes the workers' end for a failure: a program that ends a whole
// process tree (systemd, Slurm, pkill) signals the workers, too, and they may be gone before elastic-run gets it.
constexpr std::int64_t kOrderOnItsWayMs = 500;

// | the time that a next round waits for files that name the last one's failure | {kFindCrashMs} | the failure is
// restarted like any other ([crash loops](supervision.md#crash-loops)) |
constexpr std::int64_t kFindCrashMs = 1000;

}  // namespace

void Lifecycle::stop(int signal, Cause cause, Effects& out) {
  state_ = State::kStopping;
  kill_ladder(signal, cause, out);
}

void Lifecycle::stop_hang(const StopWorkers& message, Effects& out) {
  state_ = State::kStopping;
  kill_ladder_.begin_of_hang(message, settings_.shutdown_timeout_ms, out);
}

void Lifecycle::note_order_to_stop(const StopWorkers& message, Effects& out) {
  if (message.round == round_.number()) hang_.note_stop(message, out);
}

void Lifecycle::stop_on_order(const StopWorkers& message, Effects& out) {
  note_order_to_stop(message, out);
  if (message.round == round_.number()) stop(SIGTERM, Cause::kOthersOrder, out);
}

void Lifecycle::stop_running_on_order(const StopWorkers& message, Effects& out) {
  if (!message.hangs) return stop_on_order(message, out);
  note_order_to_stop(message, out);
  if (message.round == round_.number()) stop_hang(message, out);
}

void Lifecycle::stop_succeeded_on_order(const StopWorkers& message, Effects& out) {
  // A node that is done has to keep its store until the others' workers have seen its key.
  if (message.hangs && message.dumps) return stop_running_on_order(message, out);
  stop_on_order(message, out);
}

// A worker has failed here, and then the order has come to end the round for a hang: the workers that hang here are
// ended as on the other nodes.
void Lifecycle::hurry_on_order(const StopWorkers& message, Effects& out) {
  note_order_to_stop(message, out);
  if (message.round != round_.number() || !message.hangs) return;
  if (lingers() || kill_ladder_.has_killed()) return;
  out.push_back(SignalWorkers{SIGCONT});
  hurry(std::min(settings_.shutdown_timeout_ms, KillLadder::kHangMs), out);
}

void Lifecycle::kill_ladder(int signal, Cause cause, Effects& out) {
  kill_ladder_.begin(signal, cause,
                     leaving_.terminated() ? settings_.terminated_timeout_ms : settings_.shutdown_timeout_ms, out,
                     early_.spared());
}

void Lifecycle::stop_spared(int signal, Cause cause, Effects& out) {
  const auto spared = early_.spared();
  if (!spared || kill_ladder_.has_killed()) return;
  early_.is_signalled_too();
  out.push_back(SignalWorkers{.signal = signal, .cause = cause, .only = spared});
}

void Lifecycle::kill_round(Effects& out) {
  if (!is_stopping()) {
    state_ = State::kStopping;
    return kill_ladder_.begin_with_kill(out);
  }
  if (!kill_ladder_.has_killed()) kill_ladder_.kill(out);
}

void Lifecycle::timer_fired_idle(const TimerFired&, Effects& out) {
  if (!away_ || !away_->votes_for_ms) return;
  away_->votes_for_ms.reset();
  leave_unasked(out);
}

void Lifecycle::timer_fired_succeeded(const TimerFired&, Effects& out) {
  if (waits_in_barrier()) barrier_is_over(out);  // else the timer was that of the logs
}

void Lifecycle::timer_fired_stopping(const TimerFired&, Effects& out) {
  if (lingers()) return gone(out);  // neither a signal nor an answer has come
  if (!kill_ladder_.next(out)) return;
  tell_left_behind(out);
  gone(out);
}

void Lifecycle::timer_fired_ending(const TimerFired&, Effects& out) {
  if (details_.are_being_gathered()) return details_.timed_out(out);
  if (lingers() || kill_ladder_.next(out)) gone(out);
}

void Lifecycle::dumps_awaited(const DumpsAwaited& event, Effects& out) {
  if (event.round == round_.number() && ends_processes()) kill_ladder_.dumps_awaited(out);
}

// After a hang the job does without the node, if it has enough others, even with --stuck-worker=ignore: what the
// process waits for may be why the job hung, and this node's workers would wait for it in the next round, too.
void Lifecycle::tell_left_behind(Effects& out) {
  const bool costs_the_node = hang_.ends(round_.number()) && round_.place().node_count > 1;
  if (settings_.ignore_stuck_workers && !costs_the_node) return;
  const char* remedy = costs_the_node ? "" : "; --stuck-worker=ignore lets the job go on without it";
  out.push_back(
      ToCoordinator{NodeCannotRun{.round = round_.number(),
                                  .reason = format("{} survived SIGKILL{}", kill_ladder_.left_behind(), remedy),
                                  .may_stay = settings_.ignore_stuck_workers}});
}

void Lifecycle::all_gone_stopping(const AllGone& event, Effects& out) {
  if (event.training_ports) settings_.training_ports = event.training_ports;
  if (!leaving_.has_come() && round_.was_ended_from_outside()) {
    awaits_ = Awaits::kOrder;
    out.push_back(StartTimer{kOrderOnItsWayMs});
    return;
  }
  if (may_have_crashed()) {
    awaits_ = Awaits::kCrash;
    out.push_back(StartTimer{kFindCrashMs});
    out.push_back(FindCrash{round_.number()});
    return;
  }
  gone(out);
}

void Lifecycle::all_gone_ending(const AllGone& event, Effects& out) {
  if (event.training_ports) settings_.training_ports = event.training_ports;
  gone(out);
}

bool Lifecycle::may_have_crashed() const {
  // A job that is not restarted has no next round to compare with.
  const bool tells_crash = settings_.tells_crashes && round_.order().max_restarts != 0;
  if (!tells_crash && !settings_.finds_deaths) return false;
  if (leaving_.has_come() || lingers()) return false;
  return round_.cause() != nullptr && (round_.cause()->exit.signal == 0 || settings_.finds_deaths);
}

void Lifecycle::crash_found(const CrashFound& event, Effects& out) {
  if (awaits_ != Awaits::kCrash || event.round != round_.number()) return;
  round_.found(event.crash);
  gone(out);
}

void Lifecycle::gone(Effects& out) {
  awaits_ = Awaits::kNothing;
  out.push_back(StopTimer{});
  out.push_back(CloseStore{});
  if (job_result_) {
    nothing_left_ = true;
    if (ends_with_guardian_) out.push_back(ToCoordinator{round_.stopped()});
    if (!dismissed_) details_.gather(out);
    return finish_if_done(out);
  }
  state_ = State::kIdle;
  early_.round_ended();
  NodeStopped stopped = round_.stopped();
  stopped.false_alarm = rank_of_false_alarm();
  if (settings_.training_ports) stopped.training_ports = *settings_.training_ports;
  out.push_back(ToCoordinator{std::move(stopped)});
  leave_unasked(out);
}

std::optional<int> Lifecycle::rank_of_false_alarm() const {
  const auto local_rank = early_.false_alarm();
  if (!local_rank) return {};
  return round_.place().base_rank + *local_rank;
}

void Lifecycle::signal_received(const SignalReceived& event, Effects& out) {
  if (event.signal == SIGTSTP) {
    out.push_back(SignalWorkers{SIGSTOP});
    timer_.pause(now_ms_, out);
    out.push_back(Paused{});
    return;
  }
  if (event.signal == SIGCONT) {
    out.push_back(SignalWorkers{SIGCONT});
    return timer_.resume(out);
  }
  if (settings_.forward_signals.contains(event.signal)) {
    out.push_back(SignalWorkers{event.signal, Cause::kFromOutside});
    return;
  }
  const LeaveSignals::Meaning meaning = leaving_.on_signal(event, now_ms_);
  if (meaning != LeaveSignals::Meaning::kLeave) {
    const bool insists = meaning == LeaveSignals::Meaning::kInsists;
    if (insists && details_.are_being_gathered()) return details_.gathered({}, out);
    if (insists && !kill_ladder_.has_killed()) return kill_ladder_.kill(out);
    // A worker's signal came first: the time that a SIGTERM from outside allows begins with that SIGTERM.
    if (leaving_.is_first_termination(event)) hurry(settings_.terminated_timeout_ms, out);
    return;
  }
  const bool by_worker = event.worker != 0;
  if (by_worker) {
    out.push_back(Warn{format("{} came from process {}, a worker or a child of one; stopping all workers",
                              signal_name(event.signal), event.worker),
                       "signal_from_worker"});
  }
  if (leaving_.is_first_termination(event)) hurry(settings_.terminated_timeout_ms, out);
  leave(by_worker ? Cause::kOurs : Cause::kFromOutside, out);
}

void Lifecycle::leave_on_order(const LeaveJob& message, Effects& out) {
  if (!leaving_.take_order()) return;
  out.push_back(Warn{format("an operator{} has ordered this node to leave the job",
                            message.from.empty() ? "" : format(" at {}", printable(message.from))),
                     "drained"});
  leave(Cause::kOurs, out);
}

// The coordinator may still be finding out why the last round has ended: a node that was in it looks before the next.
void Lifecycle::segment_seen_idle(const SegmentSeen& event, Effects& out) {
  if (round_.place().node_count == 0) leave_if_drained(event, out);
}

void Lifecycle::leave_if_drained(const SegmentSeen& event, Effects& out) {
  if (event.drained.empty() || !leaving_.take_order(true)) return;
  out.push_back(
      Warn{format("the scheduler has drained this node, as {} says: it leaves the job", event.drained), "drained"});
  leave(Cause::kOurs, out);
}

void Lifecycle::leave(Cause cause, Effects& out) {
  // The coordinator is told first: should this node be killed while its workers end, the others know why it left.
  out.push_back(ToCoordinator{leaving_.message()});
  // The workers get the same signal, as with torchrun; some save their state on SIGINT only.
  stop_spared(leaving_.signal(), cause, out);
  if (is_in_round()) stop(leaving_.signal(), cause, out);
  if (lingers()) return gone(out);
  leave_unasked(out);
}

void Lifecycle::hurry(std::int64_t longest_ms, Effects& out) {
  if (!is_stopping() || lingers() || kill_ladder_.has_killed()) return;
  timer_.shorten(longest_ms, now_ms_, out);
}

}  // namespace elastic::agent
