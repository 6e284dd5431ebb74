#include "rendezvous/agent/lifecycle.h"

#include <csignal>
#include <utility>

#include "src/base/check.h"
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
      preparation_(settings_.logs),
      early_(settings_.error_files_stop),
      kill_ladder_(settings_.stuck_timeout_ms),
      leaving_(settings_.signals_are_shared, settings_.forward_signals.contains(SIGINT)) {
  ELASTIC_CHECK(settings_.local_world_size >= 1 && settings_.shutdown_timeout_ms >= 0);
}

Effects Lifecycle::on_event(const Event& event, std::int64_t now_ms) {
  Effects out;
  if (state_ == State::kEnded) return out;
  std::visit([&](const auto& alternative) { on(alternative, now_ms, out); }, event);
  if (state_ != State::kRunning && state_ != State::kSucceeded && hang_.round_ends()) {
    out.insert(out.begin(), StopEvidence{});
  }
  timer_.follow(out, now_ms);
  waits_.follow(waits_for(), is_idle(), now_ms);
  check_invariants(out);
  return out;
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
  if (state_ == State::kIdle) facts.false_alarm = rank_of_false_alarm();
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
  if (settings_.hosts_coordinator && !detached_ && round_.place().node_count <= 1) return false;
  return state_ == State::kPreparing || state_ == State::kRunning || ends_processes();
}

void Lifecycle::on(const FromCoordinator& event, std::int64_t now_ms, Effects& out) {
  std::visit([&](const auto& message) { on(message, now_ms, out); }, event.message);
}

void Lifecycle::on(const PrepareRound& message, std::int64_t, Effects& out) {
  if (state_ != State::kIdle) {
    out.push_back(
        Warn{format("round {} cannot be prepared: round {} has not ended on this node", message.round, round_.number()),
             "round_refused"});
    return;
  }
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

void Lifecycle::on(const StoreOpened& event, std::int64_t, Effects& out) {
  if (!preparation_.is_answered_about_this_store() || state_ != State::kPreparing) return;
  out.push_back(ToCoordinator{StoreIsOpen{round_.number(), event.endpoint}});
}

void Lifecycle::on(const StoreFailed& event, std::int64_t, Effects& out) {
  if (!preparation_.is_answered_about_this_store() || state_ != State::kPreparing) return;
  out.push_back(ToCoordinator{NodeCannotRun{round_.number(), event.reason}});
}

void Lifecycle::on(const RunCheck& message, std::int64_t, Effects& out) {
  if (state_ != State::kPreparing) return;
  preparation_.check(message.phase);
  out.push_back(CheckNode{message.round, message.phase, message.order});
}

void Lifecycle::on(const NodeChecked& event, std::int64_t, Effects& out) {
  if (state_ != State::kPreparing || event.round != round_.number()) return;
  preparation_.check_is_answered();
  out.push_back(ToCoordinator{CheckDone{event.round, event.phase, event.result}});
}

void Lifecycle::on(const RunWorkers& message, std::int64_t, Effects& out) {
  // A stop that this node has decided in the meantime stands.
  if (state_ != State::kPreparing || message.round != round_.number()) return;
  preparation_.run_with(message.store);
  start_if_ready(out);
}

void Lifecycle::start_if_ready(Effects& out) {
  const StoreEndpoint* store = preparation_.ready();
  if (state_ != State::kPreparing || store == nullptr) return;
  state_ = State::kRunning;
  round_.start();
  hang_.round_began(round_.number());
  out.push_back(StartWorkers{round_.order(), *store});
  const bool another_may_come = round_.order().restart_count < round_.order().max_restarts;
  if (preparation_.has_logs() && another_may_come) out.push_back(StartTimer{kPrepareLogsMs});
}

void Lifecycle::on(const LogsOpened& event, std::int64_t, Effects& out) {
  if (state_ != State::kPreparing || !preparation_.awaits_logs() || event.round != round_.number()) return;
  preparation_.logs_are_open();
  out.push_back(StopTimer{});
  start_if_ready(out);
}

void Lifecycle::on(const LogsFailed& event, std::int64_t, Effects& out) {
  if (state_ != State::kPreparing || !preparation_.awaits_logs() || event.round != round_.number()) return;
  out.push_back(StopTimer{});
  out.push_back(ToCoordinator{NodeCannotRun{round_.number(), event.reason}});
}

void Lifecycle::on(const WorkerStarted& event, std::int64_t, Effects&) { round_.started(event); }

void Lifecycle::on(const WorkerNotStarted& event, std::int64_t, Effects& out) {
  out.push_back(ToCoordinator{
      NodeCannotRun{round_.number(), format("local rank {} was not started: {}", event.local_rank, event.reason)}});
}

void Lifecycle::on(const WorkerExited& event, std::int64_t, Effects& out) {
  // While a worker is left alone the others have got SIGTERM and nothing else.
  const bool was_killed = event.exit.signal != 0 && event.exit.signal != SIGTERM && !kill_ladder_.has_killed();
  const auto spared = early_.spared();
  const bool explains = was_killed && early_.is_explained_by_death_of(event.local_rank);
  if (explains) out.push_back(SignalWorkers{.signal = SIGTERM, .only = spared});
  const bool has_failed_first =
      explains || (!event.exit.success() && !kill_ladder_.has_killed() && early_.failed(event.local_rank));
  round_.exited(event, state_ != State::kRunning && !has_failed_first);
  if (state_ != State::kRunning) return;
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

void Lifecycle::on(const ErrorFileWritten& event, std::int64_t, Effects& out) {
  if (state_ != State::kRunning || event.round != round_.number() || !round_.runs(event.local_rank)) return;
  if (!early_.written(event.local_rank, round_.has_company(event.local_rank))) return;
  round_.stops_for_error_file(event.local_rank, event.wall_ms);
  // The coordinator hears of it first: workers of other nodes fail as soon as those of this node are gone.
  out.push_back(ToCoordinator{
      WorkerFailed{.round = round_.number(), .failure = round_.about_to_fail(event.local_rank), .is_uncertain = true}});
  stop(SIGTERM, Cause::kOurs, out);
}

void Lifecycle::on(const StopWorkers& message, std::int64_t now_ms, Effects& out) {
  if (message.round != round_.number()) return;
  hang_.on(message, out);
  if (message.hangs && state_ == State::kStopping) return hurry_for_hang(now_ms, out);
  // A node that is done has to keep its store until the others' workers have seen its key.
  const bool may_have_store = message.dumps && state_ == State::kSucceeded;
  if (!message.hangs || (state_ != State::kRunning && !may_have_store)) {
    return stop(SIGTERM, Cause::kOthersOrder, out);
  }
  state_ = State::kStopping;
  kill_ladder_.begin_of_hang(message, settings_.shutdown_timeout_ms, out);
}

void Lifecycle::on(const DumpsAwaited& event, std::int64_t, Effects& out) {
  if (event.round == round_.number() && ends_processes()) kill_ladder_.dumps_awaited(out);
}

void Lifecycle::on(const Detached& event, std::int64_t, Effects& out) {
  detached_ = true;
  votes_for_ms_ = event.votes_for_ms;
  waits_.forget_news();
  leave_unasked(out);
}

void Lifecycle::on(const Attached&, std::int64_t, Effects& out) {
  if (detached_ && state_ == State::kIdle && votes_for_ms_) out.push_back(StopTimer{});
  detached_ = false;
  votes_for_ms_.reset();
  // The coordinator may not have got the earlier message.
  if (leaving_.has_come() && !job_result_) out.push_back(ToCoordinator{leaving_.message()});
  if (state_ == State::kSucceeded && waits_to_leave()) ask_to_leave(out);
}

void Lifecycle::on(const LeaseOver&, std::int64_t, Effects& out) {
  if (!needs_lease()) return;
  if (state_ == State::kIdle) return;
  out.push_back(
      Warn{"no message from the coordinator for longer than the lease: killing the workers, "
           "because other nodes may have taken over their ranks",
           "lease_over"});
  kill_round(out);
}

void Lifecycle::on(const Rejected& message, std::int64_t, Effects& out) {
  if (job_result_) {
    // A coordinator that rejects this node does not need its job result.
    dismissed_ = true;
    if (!nothing_left_ && !awaiting_background_) kill_round(out);
    return finish_if_done(out);
  }
  if (waits_to_leave()) return depart(out);
  if (message.why == Rejected::Why::kRoundWentOn) {
    if (state_ == State::kIdle) return;
    out.push_back(Warn{format("the job continued without this node; killing its workers of round {}", round_.number()),
                       "round_went_on"});
    return kill_round(out);
  }
  // A node that is to come again later is out of its round, too, and joins with no process of that left.
  if (state_ != State::kIdle) kill_round(out);
  if (message.retry_ms) return;
  end({.outcome = JobResult::Outcome::kFailed,
       .reason = message.reason,
       .round = round_.number(),
       .is_unhealthy = message.why == Rejected::Why::kEvicted},
      out);
}

}  // namespace elastic::agent
