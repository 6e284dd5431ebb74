#include "rendezvous/events/node_event_log.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <variant>

#include "src/base/overloaded.h"
#include "src/base/program_name.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::events {

using namespace agent;

namespace {

using protocol::JobResult;
using Level = LogEvent::Level;

// | pids in one line of the log | {kPidsShown} | `...`; `--log-level=debug` has them all |
constexpr std::size_t kPidsShown = 16;

// "rank 3", "ranks 0-3"
std::string ranks_of(const protocol::NodePlace& place, int workers) {
  if (workers == 1) return format("rank {}", place.base_rank);
  return format("ranks {}-{}", place.base_rank, place.base_rank + workers - 1);
}

Json whole(std::int64_t number) { return Json(number); }
Json with(std::string_view name, Json value) {
  Json object = Json::object();
  object.set(name, std::move(value));
  return object;
}

void add_event(LogEvents& out, Level level, std::string_view event, std::string text, Json fields = Json::object()) {
  out.push_back({.level = level, .event = event, .text = std::move(text), .fields = std::move(fields)});
}

}  // namespace

LogEvent NodeEventLog::began() const {
  const int workers = settings_.local_world_size;
  return {.level = Level::kInfo,
          .event = "launch",
          .text = format("run {}: {} on this node, {} at most: {}", settings_.run_id, counted(workers, "worker"),
                         counted(settings_.max_restarts, "restart"), settings_.title),
          .fields = Json::object()
                        .set("run_id", settings_.run_id)
                        .set("local_world_size", workers)
                        .set("max_restarts", settings_.max_restarts)
                        .set("title", settings_.title)};
}

LogEvents NodeEventLog::on_event(const Event& event, std::int64_t now_ms) {
  LogEvents out;
  now_ms_ = now_ms;
  why_ = why_the_end_;
  std::visit(Overloaded{[&](const FromCoordinator& e) { on_from_coordinator(e, out); },
                        [&](const StoreOpened& e) { on_store_opened(e, out); },
                        [&](const LogsOpened& e) { on_logs_opened(e, out); },
                        [&](const WorkerStarted& e) { on_worker_started(e, out); },
                        [&](const WorkerNotStarted& e) { on_worker_not_started(e, out); },
                        [&](const WorkerExited& e) { on_worker_exited(e, out); },
                        [&](const SignalReceived& e) { on_signal_received(e, out); },
                        [&](const NodeChecked& e) { on_node_checked(e, out); },
                        [&](const GuardianLost& e) { on_guardian_lost(e, out); },
                        [&](const ProgressMade& e) { on_progress_made(e, out); }, [](const auto&) {}},
             event);
  return out;
}

LogEvents NodeEventLog::on_effect(const Effect& effect, std::int64_t now_ms) {
  LogEvents out;
  now_ms_ = now_ms;
  std::visit(Overloaded{[&](const SignalWorkers& e) { on_signal_workers(e, out); },
                        [&](const AwaitAllGone& e) { on_await_all_gone(e, out); },
                        [&](const StartWorkers& e) { on_start_workers(e, out); },
                        [&](const CheckNode& e) { on_check_node(e, out); },
                        [&](const LeaveBackground& e) { on_leave_background(e, out); },
                        [&](const CloseStore& e) { on_close_store(e, out); }, [&](const Warn& e) { on_warn(e, out); },
                        [&](const Finish& e) { on_finish(e, out); }, [](const auto&) {}},
             effect);
  return out;
}

void NodeEventLog::on_from_coordinator(const FromCoordinator& event, LogEvents& out) {
  if (const auto* round = std::get_if<protocol::PrepareRound>(&event.message)) return prepared(*round, out);
  if (const auto* stop = std::get_if<protocol::StopWorkers>(&event.message))
    why_ = stop->hangs ? "the round hangs" : "the coordinator stopped the round";
  if (std::holds_alternative<protocol::LeaveJob>(event.message)) why_ = "an operator has ordered this node to leave";
  if (const auto* end = std::get_if<protocol::EndJob>(&event.message)) {
    job_succeeded_ = end->job_result.outcome == JobResult::Outcome::kSucceeded;
    why_the_end_ = job_succeeded_ ? "all workers succeeded" : "the job has ended";
    why_ = why_the_end_;
  }
  if (const auto* news = std::get_if<protocol::Awaiting>(&event.message)) {
    if (news->what.empty() || std::exchange(standby_for_, news->what) == news->what) return;
    add_event(out, Level::kDebug, "standby", news->what, with("reason", news->what));
  }
  if (const auto* refused = std::get_if<protocol::Rejected>(&event.message)) {
    add_event(out, Level::kDebug, "rejected", format("the coordinator rejected this node: {}", refused->reason),
              with("reason", refused->reason).set("comes_again", refused->retry_ms.has_value()));
  }
}

void NodeEventLog::prepared(const protocol::PrepareRound& round, LogEvents& out) {
  round_ = round;
  workers_.clear();
  stopping_ = false;
  spared_.reset();
  progress_told_ = false;
  standby_for_.clear();
  const protocol::NodePlace& place = round.place;
  const std::string why = round.reason.empty() ? "" : format(": {}", round.reason);
  const std::string ranks = ranks_of(place, settings_.local_world_size);
  const std::string text = is_alone() ? format("round {}: prepared, restart {} of {}; node {} of {}, {} of {}",
                                               round.round, round.restart_count, round.max_restarts, place.node_rank,
                                               place.node_count, ranks, place.world_size)
                                      : format("round {}: {}, {}; this is node {}, {}; restart {} of {}{}", round.round,
                                               counted(place.node_count, "node"), counted(place.world_size, "worker"),
                                               place.node_rank, ranks, round.restart_count, round.max_restarts, why);
  // In a job of many nodes every node's log has the round, whatever its level.
  add_event(out, is_alone() ? Level::kInfo : Level::kAlways, "round_prepared", text,
            Json::object()
                .set("round", whole(round.round))
                .set("restart_count", round.restart_count)
                .set("node_rank", place.node_rank)
                .set("node_count", place.node_count)
                .set("base_rank", place.base_rank)
                .set("world_size", place.world_size)
                .set("reason", round.reason));
}

void NodeEventLog::on_store_opened(const StoreOpened& event, LogEvents& out) {
  const protocol::StoreEndpoint& at = event.endpoint;
  add_event(out, Level::kInfo, "store_open",
            at.address.empty() ? format("round {}: the worker store is open at port {}", round_.round, at.port)
                               : format("round {}: the worker store is at {}:{}", round_.round, at.address, at.port),
            with("round", whole(round_.round)).set("address", at.address).set("port", at.port));
}

void NodeEventLog::on_logs_opened(const LogsOpened& event, LogEvents& out) {
  if (!settings_.logs) return;
  add_event(out, Level::kDebug, "logs_open", format("round {}: log directories are ready", event.round),
            with("round", whole(event.round)));
}

void NodeEventLog::on_worker_started(const WorkerStarted& event, LogEvents& out) {
  const int rank = round_.place.base_rank + event.local_rank;
  add_event(
      out, Level::kDebug, "worker_started", format("round {}: rank {} started, pid {}", round_.round, rank, event.pid),
      with("round", whole(round_.round)).set("rank", rank).set("local_rank", event.local_rank).set("pid", event.pid));
  workers_.push_back({event.pid, now_ms_, event.start, event.spared_cpu_ms});
  if (static_cast<int>(workers_.size()) == settings_.local_world_size) started(out);
}

void NodeEventLog::on_worker_not_started(const WorkerNotStarted& event, LogEvents& out) {
  const int rank = round_.place.base_rank + event.local_rank;
  add_event(out, Level::kDebug, "worker_not_started",
            format("round {}: rank {} was not started: {}", round_.round, rank, event.reason),
            with("round", whole(round_.round))
                .set("rank", rank)
                .set("local_rank", event.local_rank)
                .set("reason", event.reason));
}

void NodeEventLog::started(LogEvents& out) {
  std::string pids;
  for (std::size_t i = 0; i < workers_.size() && i < kPidsShown; ++i) pids += format(" {}", workers_[i].pid);
  const int count = static_cast<int>(workers_.size());
  const Worker& one = workers_.front();
  const bool is_warm = one.start == WorkerStart::kWarm;
  const std::int64_t took_ms = now_ms_ - began_to_start_ms_;
  const std::string how =
      is_warm ? format(" warm in {} ms, each without {} ms of processor time", took_ms, one.spared_cpu_ms) : "";
  add_event(out, Level::kInfo, "workers_started",
            format("round {}: {} started{}, {}{}{}", round_.round, ranks_of(round_.place, count), how,
                   plural("pid", count), pids, workers_.size() > kPidsShown ? " ..." : ""),
            with("round", whole(round_.round))
                .set("base_rank", round_.place.base_rank)
                .set("workers", count)
                .set("start", name_of(one.start))
                .set("milliseconds", took_ms)
                .set("spared_cpu_ms", is_warm ? Json(one.spared_cpu_ms) : Json()));
}

void NodeEventLog::on_worker_exited(const WorkerExited& event, LogEvents& out) {
  const int rank = round_.place.base_rank + event.local_rank;
  const Worker& worker = workers_.at(static_cast<std::size_t>(event.local_rank));
  if (!event.exit.success()) why_ = format("rank {} {}", rank, event.exit.text());
  add_event(out, Level::kInfo, "worker_exited", format("round {}: rank {} {}", round_.round, rank, event.exit.text()),
            with("round", whole(round_.round))
                .set("rank", rank)
                .set("local_rank", event.local_rank)
                .set("pid", worker.pid)
                .set("exit_code", event.exit.python_code())
                .set("signal", event.exit.signal != 0 ? Json(signal_name(event.exit.signal)) : Json())
                .set("core_dumped", event.exit.core_dumped)
                .set("stopped_by_us", stopping_ && spared_ != event.local_rank)
                .set("milliseconds", now_ms_ - worker.started_ms));
}

void NodeEventLog::on_signal_received(const SignalReceived& event, LogEvents& out) {
  const std::string name = signal_name(event.signal);
  why_ = format("{} got {}", program_name(), name);
  const bool by_worker = event.worker != 0;
  add_event(out, Level::kDebug, "signal",
            by_worker ? format("got {} from process {}", name, event.worker) : format("got {}", name),
            with("signal", name).set("worker", by_worker ? Json(event.worker) : Json()));
}

void NodeEventLog::on_check_node(const CheckNode& effect, LogEvents& out) {
  add_event(out, Level::kDebug, "check_began",
            format("round {}: phase {} of this node's check begins", effect.round, effect.phase),
            with("round", whole(effect.round)).set("phase", whole(effect.phase)));
}

void NodeEventLog::on_node_checked(const NodeChecked& event, LogEvents& out) {
  add_event(out, Level::kDebug, "check_answered",
            format("round {}: phase {} of this node's check is done", event.round, event.phase),
            with("round", whole(event.round)).set("phase", whole(event.phase)).set("result", event.result));
}

void NodeEventLog::on_guardian_lost(const GuardianLost& event, LogEvents&) {
  why_ = event.parent == 0 ? "parent process was killed" : format("parent process {} was killed", event.parent);
}

// Said once in a round: the status shows how far it is.
void NodeEventLog::on_progress_made(const ProgressMade& event, LogEvents& out) {
  if (event.progress.round != round_.round || std::exchange(progress_told_, true)) return;
  const protocol::ProgressOfRank& newest = event.progress.newest;
  const std::string who = newest.rank ? format("rank {}", *newest.rank) : "a rank of this node";
  const std::string step = newest.step ? format(", at step {}", *newest.step) : "";
  add_event(out, Level::kInfo, "progress_seen",
            format("round {}: {} makes progress{} ({})", round_.round, who, step, progress::name_of(newest.source)),
            with("round", whole(round_.round))
                .set("rank", newest.rank ? Json(*newest.rank) : Json())
                .set("step", newest.step ? Json(*newest.step) : Json())
                .set("source", progress::name_of(newest.source)));
}

void NodeEventLog::on_start_workers(const StartWorkers& effect, LogEvents& out) {
  began_to_start_ms_ = now_ms_;
  add_event(out, Level::kDebug, "round_began",
            format("round {}: starting the workers of this node", effect.round.round),
            with("round", whole(effect.round.round))
                .set("store_address", effect.store.address)
                .set("store_port", effect.store.port));
}

void NodeEventLog::on_signal_workers(const SignalWorkers& effect, LogEvents& out) {
  sent_signal_ = effect.signal;
  if (effect.spared) {
    const int rank = round_.place.base_rank + *effect.spared;
    why_ = format("rank {} has written an error file", rank);
    add_event(out, Level::kInfo, "error_file", format("round {}: {}, and ends", round_.round, why_),
              with("round", whole(round_.round)).set("rank", rank).set("local_rank", *effect.spared));
  }
  if (effect.spared || effect.only || effect.signal == SIGKILL) spared_ = effect.spared;
  if (stopping_ && effect.signal == SIGKILL) {
    return add_event(out, Level::kInfo, "workers_killed",
                     format("round {}: sending SIGKILL to the processes that are left", round_.round),
                     with("round", whole(round_.round)));
  }
  const std::string name = signal_name(effect.signal);
  add_event(out, Level::kDebug, "signal_sent", format("sending {} to the workers", name), with("signal", name));
}

LogEvents NodeEventLog::signalled_alone(int signal, const std::vector<int>& local_ranks) const {
  if (local_ranks.empty()) return {};
  std::vector<int> ranks;
  Json list = Json::array();
  for (const int local_rank : local_ranks) {
    ranks.push_back(round_.place.base_rank + local_rank);
    list.push(ranks.back());
  }
  const std::string name = signal_name(signal);
  LogEvents out;
  add_event(
      out, Level::kInfo, "signalled_alone",
      format("round {}: {} {} {} {} and got it before {} helpers", round_.round, plural("rank", ranks.size()),
             rank_ranges(ranks), ranks.size() == 1 ? "handles" : "handle", name, ranks.size() == 1 ? "its" : "their"),
      with("round", whole(round_.round)).set("signal", name).set("ranks", std::move(list)));
  return out;
}

std::string NodeEventLog::stopping_by(int signal) const {
  if (signal == SIGKILL) return "killing workers";
  const std::string name = signal_name(signal);
  return job_succeeded_ ? format("sending {} to any processes left", name) : format("stopping workers with {}", name);
}

void NodeEventLog::on_await_all_gone(const AwaitAllGone&, LogEvents& out) {
  stopping_ = true;
  stopped_at_ms_ = now_ms_;
  const std::string signal = signal_name(sent_signal_);
  add_event(out, Level::kInfo, "stop",
            format("round {}: {}{}", round_.round, stopping_by(sent_signal_), why_.empty() ? "" : format(": {}", why_)),
            with("round", whole(round_.round)).set("signal", signal).set("reason", why_));
}

void NodeEventLog::on_leave_background(const LeaveBackground&, LogEvents& out) {
  left_background_ = true;
  add_event(out, Level::kInfo, "background_left",
            format("round {}: processes that its workers left running are kept", round_.round),
            with("round", whole(round_.round)));
}

void NodeEventLog::on_close_store(const CloseStore&, LogEvents& out) {
  if (left_background_) return;
  add_event(
      out, Level::kInfo, "workers_gone",
      format("round {}: all its processes have ended, {} ms after the stop", round_.round, now_ms_ - stopped_at_ms_),
      with("round", whole(round_.round)).set("milliseconds", now_ms_ - stopped_at_ms_));
}

void NodeEventLog::on_warn(const Warn& effect, LogEvents& out) {
  // No event has told this reason before: the link knows it by the clock alone.
  if (effect.event == "lease_over") why_ = "the lease is over";
  add_event(out, Level::kWarning, effect.event, effect.text);
}

void NodeEventLog::on_finish(const Finish& effect, LogEvents& out) {
  const JobResult& job_result = effect.job_result;
  const bool well = job_result.outcome == JobResult::Outcome::kSucceeded;
  const bool failed = job_result.outcome == JobResult::Outcome::kFailed;
  const char* words = well ? "the job has succeeded" : failed ? "the job has failed" : "the job was stopped";
  add_event(out, Level::kInfo, "verdict",
            format("{}; {} of {} restarts were used", words, job_result.restarts_used, settings_.max_restarts),
            with("outcome", well     ? "succeeded"
                            : failed ? "failed"
                                     : "stopped")
                .set("round", whole(job_result.round))
                .set("restarts_used", job_result.restarts_used)
                .set("reason", job_result.reason));
}

LogEvents NodeEventLog::waits_for(const std::optional<Waiting>& waiting, std::int64_t now_ms) {
  LogEvents out;
  const bool waits = waiting && waiting->for_others;
  if (waits == waits_since_ms_.has_value()) return out;
  if (waits) {
    waits_since_ms_ = now_ms;
    add_event(out, Level::kDebug, "waiting_began", waiting->what);
  } else {
    const std::int64_t waited_ms = now_ms - *std::exchange(waits_since_ms_, std::nullopt);
    add_event(out, Level::kDebug, "waiting_ended", format("waited for {} ms", waited_ms),
              with("milliseconds", waited_ms));
  }
  return out;
}

LogEvents NodeEventLog::coordinator_is(bool reached, bool matters, const std::string& problem,
                                       std::int64_t loss_timeout_ms) {
  LogEvents out;
  if (is_alone()) return out;  // the coordinator is in this process
  if (reached == std::exchange(reached_, reached)) return out;
  const std::string& endpoint = settings_.endpoint;
  const Json fields = with("endpoint", endpoint);
  if (reached && std::exchange(loss_told_, false)) {
    add_event(out, Level::kWarning, "coordinator_back", format("reconnected to the coordinator at {}", endpoint),
              fields);
  } else if (reached) {
    add_event(out, Level::kDebug, "coordinator_found", format("connected to the coordinator at {}", endpoint), fields);
  } else if (matters) {
    loss_told_ = true;
    add_event(out, Level::kWarning, "coordinator_lost",
              format("lost the coordinator at {}: {}; reconnecting{}", endpoint, problem,
                     stopping_ ? "" : " while the workers keep running, until their lease is over"),
              Json(fields).set("reason", problem));
  } else {
    add_event(out, Level::kDebug, "coordinator_left",
              format("not connected to the coordinator at {}: {}", endpoint, problem),
              Json(fields).set("reason", problem));
  }
  const std::int64_t own_ms = settings_.loss_timeout_ms;
  if (reached && own_ms != 0 && own_ms != loss_timeout_ms &&
      std::exchange(loss_timeout_told_ms_, loss_timeout_ms) != loss_timeout_ms) {
    add_event(
        out, Level::kWarning, "loss_timeout_differs",
        format(
            "loss_timeout: this node was given {} s, and the coordinator has {} s, which holds; give the same to the "
            "coordinator and to all nodes",
            own_ms / 1000, loss_timeout_ms / 1000),
        Json(fields).set("given_ms", own_ms).set("holds_ms", loss_timeout_ms));
  }
  return out;
}

}  // namespace elastic::events
