#include "rendezvous/agent/lifecycle.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/program_name.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::agent {

using namespace protocol;

using Cause = SignalWorkers::Cause;

namespace {

// The numbers of the signals by name: this folder includes no <csignal>.
const int kSigTerm = *signal_number("TERM");
const int kSigKill = *signal_number("KILL");
const int kSigInt = *signal_number("INT");
const int kSigHup = *signal_number("HUP");
const int kSigQuit = *signal_number("QUIT");
const int kSigStop = *signal_number("STOP");
const int kSigTstp = *signal_number("TSTP");
const int kSigCont = *signal_number("CONT");

// A second signal sooner than this after the first is taken for the same wish (Slurm, an impatient
// script); later it means "now".
constexpr std::int64_t kSecondSignalMs = 1000;

// From SIGKILL to the message that names what has not ended.
constexpr std::int64_t kNameSurvivorsMs = 1000;

// Who ends a whole process tree (systemd, Slurm, pkill) signals the workers too, and they may be gone
// before the order to stop arrives here: so long it is waited for before their end counts as a failure.
constexpr std::int64_t kOrderOnItsWayMs = 500;

// From the start of the workers until log directories are made for a round that may follow: until then
// the new processes need the processors.
constexpr std::int64_t kPrepareLogsMs = 20;

// How long log directories and files may take to be opened. Training does not wait for a file system
// that hangs.
constexpr std::int64_t kOpenLogsMs = 2000;

// So long a next round waits for files that say what the last one failed of, where their file system hangs.
constexpr std::int64_t kFindCrashMs = 1000;

// True where the first failure is a death by a signal that is sent to whole process trees.
bool ended_from_outside(const std::vector<WorkerFailure>& failures) {
  if (failures.empty() || failures.front().stopped_by_us) return false;
  const int signal = failures.front().exit.signal;
  return signal == kSigTerm || signal == kSigInt || signal == kSigHup || signal == kSigQuit;
}

}  // namespace

Lifecycle::Lifecycle(NodeSettings settings) : settings_(std::move(settings)) {
  ELASTIC_CHECK(settings_.local_world_size >= 1 && settings_.shutdown_timeout_ms >= 0);
}

Effects Lifecycle::on_event(const Event& event, std::int64_t now_ms) {
  Effects out;
  if (state_ == State::kEnded) return out;
  std::visit([&](const auto& known) { on(known, now_ms, out); }, event);
  for (const Effect& effect : out) {
    if (const auto* started = std::get_if<StartTimer>(&effect)) deadline_ms_ = now_ms + started->delay_ms;
    if (std::holds_alternative<StopTimer>(effect)) deadline_ms_.reset();
  }
  if (std::exchange(was_idle_, is_idle()) != is_idle()) idle_since_ms_ = now_ms;
  if (const Waited waited = waited_for(); std::exchange(waited_, waited) != waited) waited_since_ms_ = now_ms;
  return out;
}

void Lifecycle::on(const Begin&, std::int64_t, Effects& out) { out.push_back(ToCoordinator{joins()}); }

NodeJoins Lifecycle::joins() const {
  using Activity = AgentFacts::Activity;
  NodeJoins joins{.local_world_size = settings_.local_world_size,
                  .role = settings_.role,
                  .agent = settings_.agent,
                  .address = settings_.address,
                  .node_rank = settings_.node_rank,
                  .hosts_coordinator = settings_.hosts_coordinator,
                  .terms = settings_.terms,
                  .rules = settings_.rules,
                  .facts = {},
                  .addresses = settings_.addresses,
                  .check = settings_.check,
                  .session = 0,
                  .group = settings_.group};
  AgentFacts& facts = joins.facts;
  // Only what a coordinator has decided, and others may not have heard.
  if (!dismissed_) facts.verdict = verdict_;
  if (round_.membership == 0) return joins;  // no round yet
  facts.round = round_.round;
  facts.place = round_.place;
  facts.restart_count = round_.restart_count;
  facts.losses = round_.losses;
  facts.membership = round_.membership;
  facts.failures = failures_;
  switch (state_) {
    case State::kIdle:
    case State::kEnded: facts.activity = Activity::kIdle; break;
    case State::kPreparing: facts.activity = Activity::kPreparing; break;
    case State::kRunning: facts.activity = Activity::kRunning; break;
    case State::kSucceeded: facts.activity = Activity::kSucceeded; break;
    case State::kStopping: facts.activity = Activity::kStopping; break;
    case State::kEnding: facts.activity = nothing_left_ ? Activity::kIdle : Activity::kStopping; break;
  }
  return joins;
}

bool Lifecycle::needs_lease() const {
  if (dismissed_) return false;
  // Alone beside its coordinator, nobody can take its place, unless by taking the coordinator's; elsewhere even the
  // only node of a job may be replaced.
  if (settings_.hosts_coordinator && !settings_.coordinator_may_move && round_.place.node_count <= 1) return false;
  return state_ == State::kPreparing || state_ == State::kRunning || state_ == State::kStopping ||
         (state_ == State::kEnding && !nothing_left_);
}

void Lifecycle::on(const FromCoordinator& event, std::int64_t now_ms, Effects& out) {
  if (const auto* news = std::get_if<Awaiting>(&event.message)) take_news(*news, now_ms);
  std::visit([&](const auto& known) { told(known, out); }, event.message);
}

void Lifecycle::told(const PrepareRound& message, Effects& out) {
  if (state_ != State::kIdle) {
    out.push_back(
        Warn{format("round {} cannot be prepared: round {} has not ended on this node", message.round, round_.round),
             "round_refused"});
    return;
  }
  state_ = State::kPreparing;
  round_ = message;
  news_.reset();
  check_phase_.reset();
  workers_.assign(static_cast<std::size_t>(settings_.local_world_size), Worker{});
  exited_well_ = 0;
  failures_.clear();
  crash_.reset();
  left_behind_.clear();
  if (!message.reason.empty()) {
    const std::string count = message.charged ? format("restart {} of {}", message.restart_count, message.max_restarts)
                                              : "not counted as a restart";
    out.push_back(Warn{format("{}; {} all workers ({})", message.reason, has_run_ ? "restarting" : "starting", count),
                       "restart"});
  }
  run_with_store_.reset();
  logs_awaited_ = false;
  // It crossed our word that we leave.
  if (told_to_leave_ms_) return stop(leave_signal_, Cause::kFromOutside, out);
  logs_awaited_ = settings_.logs;
  if (logs_awaited_) {
    out.push_back(OpenLogs{round_.round, round_.restart_count});
    out.push_back(StartTimer{kOpenLogsMs});
  }
  // The worker store is served by the node of group rank 0; the others hear where it is.
  if (message.place.node_rank != 0) return;
  ++stores_awaited_;
  out.push_back(OpenStore{message.admits});
}

bool Lifecycle::is_store_of_this_round() {
  if (stores_awaited_ == 0 || --stores_awaited_ > 0) return false;
  return state_ == State::kPreparing;
}

void Lifecycle::on(const StoreOpened& event, std::int64_t, Effects& out) {
  if (!is_store_of_this_round()) return;
  out.push_back(ToCoordinator{StoreIsOpen{round_.round, event.endpoint}});
}

void Lifecycle::on(const StoreFailed& event, std::int64_t, Effects& out) {
  if (!is_store_of_this_round()) return;
  out.push_back(ToCoordinator{NodeCannotRun{round_.round, event.reason}});
}

void Lifecycle::told(const RunWorkers& message, Effects& out) {
  // A stop that crossed the order on its way has won.
  if (state_ != State::kPreparing || message.round != round_.round) return;
  run_with_store_ = message.store;
  start_if_ready(out);
}

void Lifecycle::start_if_ready(Effects& out) {
  if (state_ != State::kPreparing || logs_awaited_ || !run_with_store_) return;
  state_ = State::kRunning;
  has_run_ = true;
  out.push_back(StartWorkers{round_, *run_with_store_});
  const bool another_may_come = round_.restart_count < round_.max_restarts;
  if (settings_.logs && another_may_come) out.push_back(StartTimer{kPrepareLogsMs});
}

void Lifecycle::on(const LogsOpened& event, std::int64_t, Effects& out) {
  if (state_ != State::kPreparing || !logs_awaited_ || event.round != round_.round) return;
  logs_awaited_ = false;
  out.push_back(StopTimer{});
  start_if_ready(out);
}

void Lifecycle::on(const LogsFailed& event, std::int64_t, Effects& out) {
  if (state_ != State::kPreparing || !logs_awaited_ || event.round != round_.round) return;
  out.push_back(StopTimer{});
  out.push_back(ToCoordinator{NodeCannotRun{round_.round, event.reason}});
}

void Lifecycle::on(const WorkerStarted& event, std::int64_t, Effects&) {
  workers_.at(static_cast<std::size_t>(event.local_rank)).pid = event.pid;
}

void Lifecycle::on(const WorkerNotStarted& event, std::int64_t, Effects& out) {
  out.push_back(ToCoordinator{
      NodeCannotRun{round_.round, format("local rank {} was not started: {}", event.local_rank, event.reason)}});
}

void Lifecycle::on(const WorkerExited& event, std::int64_t, Effects& out) {
  workers_.at(static_cast<std::size_t>(event.local_rank)).exited = true;
  if (!event.exit.success()) failures_.push_back(failure_of(event));
  if (state_ != State::kRunning) return;
  if (event.exit.success()) {
    if (++exited_well_ < settings_.local_world_size) return;
    state_ = State::kSucceeded;
    out.push_back(ToCoordinator{WorkersSucceeded{round_.round}});
    if (waits_in_barrier()) out.push_back(StartTimer{settings_.exit_barrier_ms});
    return;
  }
  // The peers of a failed worker can only hang or fail: do not wait to be told to stop them.
  stop(kSigTerm, ended_from_outside(failures_) ? Cause::kFromOutside : Cause::kOurs, out);
  out.push_back(ToCoordinator{WorkerFailed{round_.round, failures_.back()}});
}

WorkerFailure Lifecycle::failure_of(const WorkerExited& event) const {
  const Worker& worker = workers_.at(static_cast<std::size_t>(event.local_rank));
  return {.rank = round_.place.base_rank + event.local_rank,
          .local_rank = event.local_rank,
          .node_rank = round_.place.node_rank,
          .pid = worker.pid,
          .exit = event.exit,
          .wall_ms = event.wall_ms,
          .stopped_by_us = state_ != State::kRunning};
}

void Lifecycle::told(const StopWorkers& message, Effects& out) {
  if (message.round != round_.round) return;
  stop(kSigTerm, Cause::kOthersOrder, out);
}

void Lifecycle::stop(int signal, Cause cause, Effects& out) {
  if (state_ != State::kPreparing && state_ != State::kRunning && state_ != State::kSucceeded) return;
  state_ = State::kStopping;
  sweep(signal, cause, out);
}

void Lifecycle::sweep(int signal, Cause cause, Effects& out) {
  sweep_ = Sweep::kTold;
  survivors_.clear();
  out.push_back(SignalWorkers{signal, cause});
  out.push_back(StartTimer{terminated_ ? settings_.terminated_timeout_ms : settings_.shutdown_timeout_ms});
  out.push_back(AwaitAllGone{});
}

void Lifecycle::kill(Effects& out) {
  sweep_ = Sweep::kKilled;
  out.push_back(SignalWorkers{kSigKill});
  out.push_back(StartTimer{kNameSurvivorsMs});
}

void Lifecycle::on(const TimerFired&, std::int64_t, Effects& out) {
  deadline_ms_.reset();
  // There is time now, and none between the end of a round and the next.
  if (state_ == State::kRunning) out.push_back(PrepareLogs{});
  if (state_ == State::kSucceeded) {
    if (!waits_in_barrier()) return;  // it was for the logs
    out.push_back(Warn{format("the other nodes have not ended {} s after this one's workers succeeded; it leaves",
                              settings_.exit_barrier_ms / 1000),
                       "exit_barrier"});
    out.push_back(ToCoordinator{NodeLeaves{}});
    verdict_ =
        Verdict{.outcome = Verdict::Outcome::kSucceeded, .round = round_.round, .restarts_used = round_.restart_count};
    dismissed_ = true;
    return end_well(out);
  }
  if (state_ == State::kPreparing && logs_awaited_) {
    settings_.logs = logs_awaited_ = false;
    out.push_back(GiveUpLogs{});
    return start_if_ready(out);
  }
  if (gathering_ == Gathering::kAwaited) return has_gathered({}, out);
  if (state_ != State::kStopping && state_ != State::kEnding) return;
  if (lingers_ != Lingers::kNot) return gone(out);  // nothing has come
  switch (sweep_) {
    case Sweep::kTold: return kill(out);
    case Sweep::kKilled:
      sweep_ = Sweep::kNamed;
      out.push_back(NameSurvivors{});
      out.push_back(StartTimer{std::max<std::int64_t>(settings_.stuck_timeout_ms - kNameSurvivorsMs, 0)});
      return;
    case Sweep::kNamed:
      out.push_back(AbandonWorkers{});
      left_behind_ = survivors_.empty() ? "a worker" : survivors_;
      if (!settings_.ignore_stuck_workers && state_ == State::kStopping) {
        out.push_back(ToCoordinator{NodeCannotRun{
            round_.round,
            format("{} does not end, even when killed; --stuck-worker=ignore goes on without it", left_behind_)}});
      }
      return gone(out);
  }
}

void Lifecycle::on(const SurvivorsNamed& event, std::int64_t, Effects& out) {
  survivors_ = event.text;
  out.push_back(Warn{format("killed, but still there: {}", event.text), "stuck"});
}

void Lifecycle::on(const AllGone&, std::int64_t, Effects& out) {
  if (state_ == State::kStopping && !told_to_leave_ms_ && ended_from_outside(failures_)) {
    lingers_ = Lingers::kForOrder;
    out.push_back(StartTimer{kOrderOnItsWayMs});
    return;
  }
  if (may_have_crashed()) {
    lingers_ = Lingers::kForCrash;
    out.push_back(StartTimer{kFindCrashMs});
    out.push_back(FindCrash{round_.round});
    return;
  }
  if (state_ == State::kStopping || state_ == State::kEnding) gone(out);
}

bool Lifecycle::may_have_crashed() const {
  // Who may not restart has no next attempt to compare with.
  if (!settings_.tells_crashes || round_.max_restarts == 0) return false;
  if (state_ != State::kStopping || told_to_leave_ms_ || lingers_ != Lingers::kNot) return false;
  return !failures_.empty() && !failures_.front().stopped_by_us && failures_.front().exit.signal == 0;
}

void Lifecycle::on(const CrashFound& event, std::int64_t, Effects& out) {
  if (lingers_ != Lingers::kForCrash || event.round != round_.round) return;
  crash_ = event.crash;
  gone(out);
}

void Lifecycle::gone(Effects& out) {
  lingers_ = Lingers::kNot;
  out.push_back(StopTimer{});
  out.push_back(CloseStore{});
  if (state_ == State::kEnding) {
    nothing_left_ = true;
    if (ends_with_guardian_) out.push_back(ToCoordinator{NodeStopped{round_.round, failures_, crash_}});
    gather_if_due(out);
    return finish_if_done(out);
  }
  state_ = State::kIdle;
  out.push_back(ToCoordinator{NodeStopped{round_.round, failures_, crash_}});
  if (detached_ && told_to_leave_ms_) end(stopped_by_order(), out);
}

void Lifecycle::finish_if_done(Effects& out) {
  if (!verdict_ || !nothing_left_ || !dismissed_) return;
  if (gathering_ == Gathering::kAwaited) out.push_back(StopTimer{});
  state_ = State::kEnded;
  verdict_->left_behind = left_behind_;
  out.push_back(Finish{*verdict_, told_details_.empty() ? details_ : told_details_});
}

// The job is over for this node whatever the coordinator may say.
void Lifecycle::end(Verdict verdict, Effects& out) {
  if (!verdict_) verdict_ = std::move(verdict);
  dismissed_ = true;
  if (state_ == State::kIdle) nothing_left_ = true;
  state_ = State::kEnding;
  finish_if_done(out);
}

Verdict Lifecycle::stopped_by_order() const {
  return {.outcome = Verdict::Outcome::kStopped,
          .reason = format("stopped by {}", signal_name(leave_signal_)),
          .round = round_.round,
          .restarts_used = round_.restart_count,
          .signal = leave_signal_};
}

void Lifecycle::told(const EndJob& message, Effects& out) {
  if (!verdict_ && settings_.shares_details && is_cause_of(message.verdict)) gathering_ = Gathering::kDue;
  if (gathering_ == Gathering::kNone) out.push_back(ToCoordinator{VerdictHeard{details_}});
  if (verdict_) {
    // The job has gone on without us, and with a coordinator that did not know ours.
    if (message.verdict.round > verdict_->round) verdict_ = message.verdict;
    return;
  }
  verdict_ = message.verdict;
  // A verdict that is the answer to this node's own leaving is no other node's business.
  const bool leaves = told_to_leave_ms_ && !settings_.hosts_coordinator;
  if (leaves && verdict_->outcome == Verdict::Outcome::kStopped) dismissed_ = true;
  if (state_ == State::kIdle) {
    state_ = State::kEnding;
    nothing_left_ = true;
    gather_if_due(out);
    return finish_if_done(out);
  }
  if (state_ == State::kSucceeded && verdict_->outcome == Verdict::Outcome::kSucceeded) return end_well(out);
  const bool stopping = state_ == State::kStopping;
  state_ = State::kEnding;
  if (!stopping) sweep(kSigTerm, Cause::kOthersOrder, out);
}

// Workers that have succeeded may have left processes behind.
void Lifecycle::end_well(Effects& out) {
  state_ = State::kEnding;
  if (settings_.leave_background) {
    out.push_back(LeaveBackground{});
    return gone(out);
  }
  out.push_back(StopTimer{});
  out.push_back(FindBackground{});
  awaiting_background_ = true;
}

void Lifecycle::on(const BackgroundFound& event, std::int64_t, Effects& out) {
  if (!std::exchange(awaiting_background_, false)) return;
  if (!event.text.empty()) {
    out.push_back(Warn{format("all workers have succeeded; what they left in the background is ended: {}; "
                              "--leave-background lets it live",
                              event.text),
                       "background_ended"});
  }
  sweep(kSigTerm, Cause::kOthersOrder, out);
}

bool Lifecycle::is_cause_of(const Verdict& verdict) const {
  if (verdict.outcome != Verdict::Outcome::kFailed || verdict.round != round_.round) return false;
  const auto first = std::ranges::find(verdict.failures, false, &WorkerFailure::stopped_by_us);
  if (first == verdict.failures.end() || first->node_rank != round_.place.node_rank) return false;
  return std::ranges::any_of(failures_, [&](const WorkerFailure& own) {
    return own.rank == first->rank && own.pid == first->pid && own.wall_ms == first->wall_ms;
  });
}

void Lifecycle::gather_if_due(Effects& out) {
  if (gathering_ != Gathering::kDue || dismissed_) return;
  gathering_ = Gathering::kAwaited;
  out.push_back(GatherDetails{});
  out.push_back(StartTimer{kDetailsMs});
}

void Lifecycle::on(const DetailsGathered& event, std::int64_t, Effects& out) {
  if (gathering_ != Gathering::kAwaited) return;
  out.push_back(StopTimer{});
  has_gathered(event.text, out);
}

void Lifecycle::has_gathered(std::string text, Effects& out) {
  gathering_ = Gathering::kNone;
  details_ = std::move(text);
  out.push_back(ToCoordinator{VerdictHeard{details_}});
}

void Lifecycle::told(const Dismiss& message, Effects& out) {
  dismissed_ = true;
  told_details_ = message.details;
  finish_if_done(out);
}

void Lifecycle::told(const Rejected& message, Effects& out) {
  if (verdict_) {
    // Whoever turns us away needs no verdict of ours.
    dismissed_ = true;
    if (!nothing_left_ && !awaiting_background_) kill_round(out);
    return finish_if_done(out);
  }
  if (message.why == Rejected::Why::kRoundWentOn) {
    if (state_ == State::kIdle) return;
    out.push_back(Warn{format("the job went on without this node; its workers of round {} are killed", round_.round),
                       "round_went_on"});
    return kill_round(out);
  }
  // Also who is to come again later is out of its round: it joins with nothing of it left.
  if (state_ != State::kIdle) kill_round(out);
  if (message.retry_ms) return;
  end({.outcome = Verdict::Outcome::kFailed,
       .reason = message.reason,
       .round = round_.round,
       .is_unfit = message.why == Rejected::Why::kExcluded},
      out);
}

void Lifecycle::told(const RunCheck& message, Effects& out) {
  if (state_ != State::kPreparing) return;
  check_phase_ = message.phase;
  check_is_answered_ = false;
  out.push_back(CheckNode{message.round, message.phase, message.order});
}

void Lifecycle::on(const NodeChecked& event, std::int64_t, Effects& out) {
  if (state_ != State::kPreparing || event.round != round_.round) return;
  check_is_answered_ = true;
  out.push_back(ToCoordinator{CheckDone{event.round, event.phase, event.result}});
}

// Ends what is left of the round at once: others may have these ranks already.
void Lifecycle::kill_round(Effects& out) {
  const bool stopping = state_ == State::kStopping || state_ == State::kEnding;
  if (stopping && sweep_ != Sweep::kTold) return;
  if (!stopping) {
    state_ = State::kStopping;
    survivors_.clear();
  }
  kill(out);
  if (!stopping) out.push_back(AwaitAllGone{});
}

bool Lifecycle::waits_in_barrier() const {
  // The coordinator and the store of the round are needed until the last worker is done.
  return round_.place.node_count > 1 && round_.place.node_rank != 0 && !settings_.hosts_coordinator;
}

void Lifecycle::on(const Detached&, std::int64_t, Effects& out) {
  detached_ = true;
  news_.reset();
  if (state_ == State::kIdle && told_to_leave_ms_) end(stopped_by_order(), out);
}

void Lifecycle::on(const Attached&, std::int64_t, Effects& out) {
  detached_ = false;
  // It may not have been heard before.
  if (told_to_leave_ms_ && !verdict_) out.push_back(ToCoordinator{NodeLeaves{leave_signal_}});
}

void Lifecycle::on(const LeaseOver&, std::int64_t, Effects& out) {
  if (!needs_lease()) return;
  if (state_ == State::kIdle) return;
  out.push_back(
      Warn{"the coordinator has not been heard for longer than the lease: the workers are killed, "
           "since other nodes may have taken over their ranks",
           "lease_over"});
  kill_round(out);
}

void Lifecycle::on(const GivenUp& event, std::int64_t, Effects& out) {
  if (state_ != State::kIdle && state_ != State::kEnding) kill_round(out);
  const bool ordered = told_to_leave_ms_.has_value();
  end(ordered ? stopped_by_order()
              : Verdict{.outcome = Verdict::Outcome::kFailed,
                        .reason = event.reason,
                        .round = round_.round,
                        .restarts_used = round_.restart_count},
      out);
}

void Lifecycle::on(const GuardianLost&, std::int64_t, Effects& out) {
  verdict_ = Verdict{.outcome = Verdict::Outcome::kFailed,
                     .reason = in_our_name("the outer elastic-run process has died; all workers were killed"),
                     .round = round_.round};
  dismissed_ = true;
  nothing_left_ = false;
  gathering_ = Gathering::kNone;
  awaiting_background_ = false;
  state_ = State::kEnding;
  // Where another node may host it instead, it does, as if this one had died.
  ends_with_guardian_ = settings_.hosts_coordinator && !settings_.coordinator_may_move && settings_.terms.max_nodes > 1;
  // The others are to hear why: the coordinator stays for so long, and goes then.
  if (ends_with_guardian_) out.push_back(ToCoordinator{NodeLeaves{kSigKill}});
  kill(out);
  out.push_back(AwaitAllGone{});
}

void Lifecycle::on(const SignalReceived& event, std::int64_t now_ms, Effects& out) {
  if (event.signal == kSigTstp) return pause(now_ms, out);
  if (event.signal == kSigCont) return resume(out);
  if (settings_.forward_signals.contains(event.signal)) {
    out.push_back(SignalWorkers{event.signal, Cause::kFromOutside});
    return;
  }
  const bool by_worker = event.worker != 0;
  // Every rank may say it, each when it gets to that: only who stands outside can lose patience.
  const bool asks_again = !by_worker && asked_to_leave_ms_ && now_ms - *asked_to_leave_ms_ >= kSecondSignalMs;
  if (!by_worker && !asked_to_leave_ms_) asked_to_leave_ms_ = now_ms;
  if (told_to_leave_ms_) {
    const bool insists =
        asks_again && (event.signal == kSigInt || (event.signal == kSigTerm && !settings_.signals_are_shared));
    if (insists && gathering_ == Gathering::kAwaited) {
      out.push_back(StopTimer{});
      return has_gathered({}, out);
    }
    if (insists && sweep_ == Sweep::kTold) return kill(out);
    // A worker was first to say so: whoever sends SIGTERM now allows no more time than it would have otherwise.
    if (event.signal == kSigTerm && !by_worker && !std::exchange(terminated_, true)) hurry(now_ms, out);
    return;
  }
  told_to_leave_ms_ = now_ms;
  leave_signal_ = event.signal;
  terminated_ = event.signal == kSigTerm && !by_worker;
  if (by_worker) {
    out.push_back(Warn{format("{} came from process {}, a worker or what one has started: all workers are stopped",
                              signal_name(event.signal), event.worker),
                       "signal_from_worker"});
  }
  if (terminated_) hurry(now_ms, out);
  // Others first: should we be killed before our time is over, they know that we were told to go.
  out.push_back(ToCoordinator{NodeLeaves{event.signal}});
  // The workers get the signal that we got, as with torchrun; some save their state on SIGINT only.
  stop(event.signal, by_worker ? Cause::kOurs : Cause::kFromOutside, out);
  if (lingers_ != Lingers::kNot) return gone(out);
  if (detached_ && state_ == State::kIdle) end(stopped_by_order(), out);
}

// Workers that are being stopped already have no more time than after SIGTERM.
void Lifecycle::hurry(std::int64_t now_ms, Effects& out) {
  const bool stopping = state_ == State::kStopping || state_ == State::kEnding;
  if (!stopping || lingers_ != Lingers::kNot || sweep_ != Sweep::kTold || !deadline_ms_) return;
  out.push_back(StartTimer{std::clamp<std::int64_t>(*deadline_ms_ - now_ms, 0, settings_.terminated_timeout_ms)});
}

// While all are stopped, the time that workers were given to end stands still.
void Lifecycle::pause(std::int64_t now_ms, Effects& out) {
  out.push_back(SignalWorkers{kSigStop});
  if (deadline_ms_) {
    rest_ms_ = std::max<std::int64_t>(*deadline_ms_ - now_ms, 0);
    out.push_back(StopTimer{});
  }
  out.push_back(Paused{});
}

void Lifecycle::resume(Effects& out) {
  out.push_back(SignalWorkers{kSigCont});
  if (rest_ms_) out.push_back(StartTimer{*rest_ms_});
  rest_ms_.reset();
}

}  // namespace elastic::agent
