#include "rendezvous/agent/lifecycle.h"

#include <csignal>
#include <utility>

#include "rendezvous/agent/lifecycle_table.h"
#include "src/base/check.h"
#include "src/base/overloaded.h"
#include "src/base/text.h"

namespace elastic::agent {

using namespace protocol;

using Cause = SignalWorkers::Cause;

namespace {

// From the start of the workers until log directories are made for a round that may follow: until then the new
// processes need the processors.
constexpr std::int64_t kPrepareLogsMs = 20;

}  // namespace

Lifecycle::Lifecycle(NodeSettings settings)
    : settings_(std::move(settings)),
      preparation_(settings_.logs, settings_.has_segment_file),
      early_(settings_.error_files_stop),
      kill_ladder_(settings_.stuck_timeout_ms),
      leaving_(settings_.signals_are_shared, settings_.forward_signals.contains(SIGINT)) {
  ELASTIC_CHECK(settings_.local_world_size >= 1 && settings_.shutdown_timeout_ms >= 0);
}

Effects Lifecycle::on_event(const Event& event, std::int64_t now_ms) {
  Effects out;
  if (state_ == State::kEnded) return out;
  now_ms_ = now_ms;
  if (std::holds_alternative<TimerFired>(event)) timer_.fired();
  std::visit(Overloaded{[&](const FromCoordinator& from) {
                          std::visit([&](const auto& message) { run_cell_of(message, out); }, from.message);
                        },
                        [&](const auto& one) { run_cell_of(one, out); }},
             event);
  if (!runs_or_succeeded() && hang_.round_ends()) out.insert(out.begin(), StopEvidence{});
  timer_.follow(out, now_ms);
  waits_.follow(waits_for(), is_idle(), now_ms);
  check_invariants(out);
  return out;
}

template <class Event>
void Lifecycle::run_cell_of(const Event& event, Effects& out) {
  const auto& row = std::get<LifecycleRow<Event>>(LifecycleTable::kRows);
  run_cell(row.cells, static_cast<std::size_t>(state_), *this, event, out);
}

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
  if (settings_.training_ports) joins.training_ports = *settings_.training_ports;
  AgentFacts& facts = joins.facts;
  // A coordinator that takes over may not know what the one before it has decided.
  if (!dismissed_) facts.job_result = job_result_;
  round_.report(facts);
  facts.error_files_wait = early_.is_over();
  if (is_idle()) facts.false_alarm = rank_of_false_alarm();
  if (facts.membership == 0) return joins;  // no round yet
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
  // Nobody can take the place of a round's only node while the coordinator is in the same process: nobody is elected
  // without this node. If the coordinator is elsewhere, even the only node may be replaced. Without a session no
  // coordinator is in this process, as far as is known, though its peer port may be asked.
  if (settings_.hosts_coordinator && !away_ && round_.place().node_count <= 1) return false;
  return LifecycleTable::kNeedsLease.has(state_) || ends_processes();
}

bool Lifecycle::is_in_round() const { return LifecycleTable::kInRound.has(state_); }
bool Lifecycle::runs_or_succeeded() const { return LifecycleTable::kRunsOrSucceeded.has(state_); }
bool Lifecycle::is_stopping() const { return LifecycleTable::kStopping.has(state_); }

void Lifecycle::prepare_round(const PrepareRound& message, Effects& out) {
  state_ = State::kPreparing;
  departure_ = Departure::kNot;
  round_.begin(message, settings_.local_world_size, out);
  early_.round_began(message.restart_count < message.max_restarts, message.error_files_wait);
  waits_.forget_news();
  kill_ladder_.forget_left_behind();
  // The order crossed this node's message that it leaves.
  if (leaving_.has_come()) return stop(leaving_.signal(), Cause::kFromOutside, out);
  preparation_.begin(message, out);
}

void Lifecycle::refuse_round(const PrepareRound& message, Effects& out) {
  out.push_back(
      Warn{format("round {} cannot be prepared: round {} has not ended on this node", message.round, round_.number()),
           "round_refused"});
}

void Lifecycle::store_opened(const StoreOpened& event, Effects& out) {
  if (!preparation_.is_answered_about_this_store()) return;
  out.push_back(ToCoordinator{StoreIsOpen{round_.number(), event.endpoint}});
}

void Lifecycle::store_failed(const StoreFailed& event, Effects& out) {
  if (!preparation_.is_answered_about_this_store()) return;
  out.push_back(ToCoordinator{NodeCannotRun{round_.number(), event.reason}});
}

void Lifecycle::run_check(const RunCheck& message, Effects& out) {
  preparation_.check(message.phase);
  out.push_back(CheckNode{message.round, message.phase, message.order});
}

void Lifecycle::node_checked(const NodeChecked& event, Effects& out) {
  if (event.round != round_.number()) return;
  preparation_.check_is_answered();
  out.push_back(ToCoordinator{CheckDone{event.round, event.phase, event.result}});
}

void Lifecycle::run_workers(const RunWorkers& message, Effects& out) {
  if (message.round != round_.number()) return;
  preparation_.run_with(message.store);
  start_if_ready(out);
}

void Lifecycle::start_if_ready(Effects& out) {
  const StoreEndpoint* store = preparation_.ready();
  if (store == nullptr) return;
  state_ = State::kRunning;
  round_.start();
  hang_.round_began(round_.number());
  out.push_back(StartWorkers{round_.order(), *store});
  const bool another_may_come = round_.order().restart_count < round_.order().max_restarts;
  if (preparation_.has_logs() && another_may_come) out.push_back(StartTimer{kPrepareLogsMs});
}

void Lifecycle::logs_opened(const LogsOpened& event, Effects& out) {
  if (!preparation_.awaits_logs() || event.round != round_.number()) return;
  preparation_.logs_are_open();
  out.push_back(StopTimer{});
  start_if_ready(out);
}

void Lifecycle::logs_failed(const LogsFailed& event, Effects& out) {
  if (!preparation_.awaits_logs() || event.round != round_.number()) return;
  out.push_back(StopTimer{});
  out.push_back(ToCoordinator{NodeCannotRun{round_.number(), event.reason}});
}

void Lifecycle::segment_seen_preparing(const SegmentSeen& event, Effects& out) {
  leave_if_drained(event, out);
  if (!event.drained.empty()) return;
  preparation_.segment_is_seen();
  start_if_ready(out);
}

void Lifecycle::timer_fired_preparing(const TimerFired&, Effects& out) {
  if (!preparation_.awaits_logs()) return;
  preparation_.give_up_logs();
  out.push_back(GiveUpLogs{});
  start_if_ready(out);
}

void Lifecycle::worker_not_started(const WorkerNotStarted& event, Effects& out) {
  out.push_back(ToCoordinator{
      NodeCannotRun{round_.number(), format("local rank {} was not started: {}", event.local_rank, event.reason)}});
}

void Lifecycle::note_exit(const WorkerExited& event, bool stops, Effects& out) {
  // While a worker is left alone the others have got SIGTERM and nothing else.
  const bool was_killed = event.exit.signal != 0 && event.exit.signal != SIGTERM && !kill_ladder_.has_killed();
  const auto spared = early_.spared();
  const bool explains = was_killed && early_.is_explained_by_death_of(event.local_rank);
  if (explains) out.push_back(SignalWorkers{.signal = SIGTERM, .only = spared});
  const bool has_failed_first =
      explains || (!event.exit.success() && !kill_ladder_.has_killed() && early_.failed(event.local_rank));
  round_.exited(event, stops && !has_failed_first);
}

void Lifecycle::worker_exited(const WorkerExited& event, Effects& out) { note_exit(event, true, out); }

void Lifecycle::worker_exited_running(const WorkerExited& event, Effects& out) {
  note_exit(event, false, out);
  if (event.exit.success()) {
    if (!round_.all_have_ended()) return;
    state_ = State::kSucceeded;
    out.push_back(ToCoordinator{WorkersSucceeded{round_.number()}});
    if (waits_in_barrier()) out.push_back(StartTimer{settings_.exit_barrier_ms});
    return;
  }
  // The other workers can only hang or fail without it: they are stopped without an order.
  stop(SIGTERM, round_.was_ended_from_outside() ? Cause::kFromOutside : Cause::kOurs, out);
  out.push_back(ToCoordinator{WorkerFailed{round_.number(), *round_.cause()}});
}

void Lifecycle::error_file_written(const ErrorFileWritten& event, Effects& out) {
  if (event.round != round_.number() || !round_.runs(event.local_rank)) return;
  if (!early_.written(event.local_rank, round_.has_company(event.local_rank))) return;
  round_.stops_for_error_file(event.local_rank, event.wall_ms);
  // The coordinator hears of it first: workers of other nodes fail as soon as those of this node are gone.
  out.push_back(ToCoordinator{
      WorkerFailed{.round = round_.number(), .failure = round_.about_to_fail(event.local_rank), .is_uncertain = true}});
  stop(SIGTERM, Cause::kOurs, out);
}

void Lifecycle::detach(const Detached& event, Effects&) {
  away_ = Away{event.votes_for_ms};
  waits_.forget_news();
}

void Lifecycle::detach_idle(const Detached& event, Effects& out) {
  detach(event, out);
  leave_unasked(out);
}

void Lifecycle::attach(const Attached&, Effects& out) {
  away_.reset();
  // The coordinator may not have got the earlier message.
  if (leaving_.has_come() && !job_result_) out.push_back(ToCoordinator{leaving_.message()});
}

void Lifecycle::attach_idle(const Attached& event, Effects& out) {
  if (away_ && away_->votes_for_ms) out.push_back(StopTimer{});
  attach(event, out);
}

void Lifecycle::attach_succeeded(const Attached& event, Effects& out) {
  attach(event, out);
  if (waits_to_leave()) ask_to_leave(out);
}

void Lifecycle::end_with_lease(const LeaseOver&, Effects& out) {
  if (!needs_lease()) return;
  out.push_back(
      Warn{"no message from the coordinator for longer than the lease: killing the workers, "
           "because other nodes may have taken over their ranks",
           "lease_over"});
  kill_round(out);
}

}  // namespace elastic::agent
