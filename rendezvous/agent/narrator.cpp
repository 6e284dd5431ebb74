#include "rendezvous/agent/narrator.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "src/base/program_name.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::agent {
namespace {

using protocol::Verdict;
using Level = LogEvent::Level;

// This folder includes no <csignal>.
const int kSigKill = *signal_number("KILL");

// Numbers of processes that a line names at most.
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

void say(Happenings& out, Level level, std::string_view event, std::string text, Json fields = Json::object()) {
  out.push_back({.level = level, .event = event, .text = std::move(text), .fields = std::move(fields)});
}

}  // namespace

LogEvent Narrator::began() const {
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

Happenings Narrator::happened(const Event& event, std::int64_t now_ms) {
  Happenings out;
  now_ms_ = now_ms;
  why_ = why_the_end_;
  std::visit([&](const auto& known) { take(known, out); }, event);
  return out;
}

Happenings Narrator::decided(const Effect& effect, std::int64_t now_ms) {
  Happenings out;
  now_ms_ = now_ms;
  std::visit([&](const auto& known) { carry(known, out); }, effect);
  return out;
}

void Narrator::take(const FromCoordinator& event, Happenings& out) {
  if (const auto* round = std::get_if<protocol::PrepareRound>(&event.message)) return prepared(*round, out);
  if (std::holds_alternative<protocol::StopWorkers>(event.message)) why_ = "the coordinator has ordered it";
  if (const auto* end = std::get_if<protocol::EndJob>(&event.message)) {
    why_the_end_ =
        end->verdict.outcome == Verdict::Outcome::kSucceeded ? "all workers have succeeded" : "the job has ended";
    why_ = why_the_end_;
  }
  if (const auto* news = std::get_if<protocol::Awaiting>(&event.message)) {
    if (news->what.empty() || std::exchange(standby_for_, news->what) == news->what) return;
    say(out, Level::kDebug, "standby", format("this node stands by: {}", news->what), with("reason", news->what));
  }
  if (const auto* refused = std::get_if<protocol::Rejected>(&event.message)) {
    say(out, Level::kDebug, "rejected", format("the coordinator does not take this node: {}", refused->reason),
        with("reason", refused->reason).set("comes_again", refused->retry_ms.has_value()));
  }
}

void Narrator::prepared(const protocol::PrepareRound& round, Happenings& out) {
  round_ = round;
  workers_.clear();
  stopping_ = false;
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
  // Among many nodes a round is news to the user of each.
  say(out, is_alone() ? Level::kInfo : Level::kAlways, "round_prepared", text,
      Json::object()
          .set("round", whole(round.round))
          .set("restart_count", round.restart_count)
          .set("node_rank", place.node_rank)
          .set("node_count", place.node_count)
          .set("base_rank", place.base_rank)
          .set("world_size", place.world_size)
          .set("reason", round.reason));
}

void Narrator::take(const StoreOpened& event, Happenings& out) {
  const protocol::StoreEndpoint& at = event.endpoint;
  say(out, Level::kInfo, "store_open",
      at.address.empty() ? format("round {}: the worker store is open at port {}", round_.round, at.port)
                         : format("round {}: the worker store is at {}:{}", round_.round, at.address, at.port),
      with("round", whole(round_.round)).set("address", at.address).set("port", at.port));
}

void Narrator::take(const LogsOpened& event, Happenings& out) {
  if (!settings_.logs) return;
  say(out, Level::kDebug, "logs_open", format("round {}: log directories are there", event.round),
      with("round", whole(event.round)));
}

void Narrator::take(const WorkerStarted& event, Happenings& out) {
  const int rank = round_.place.base_rank + event.local_rank;
  say(out, Level::kDebug, "worker_started", format("round {}: rank {} started, pid {}", round_.round, rank, event.pid),
      with("round", whole(round_.round)).set("rank", rank).set("local_rank", event.local_rank).set("pid", event.pid));
  workers_.push_back({event.pid, now_ms_});
  if (static_cast<int>(workers_.size()) == settings_.local_world_size) started(out);
}

void Narrator::take(const WorkerNotStarted& event, Happenings& out) {
  const int rank = round_.place.base_rank + event.local_rank;
  say(out, Level::kDebug, "worker_not_started",
      format("round {}: rank {} was not started: {}", round_.round, rank, event.reason),
      with("round", whole(round_.round))
          .set("rank", rank)
          .set("local_rank", event.local_rank)
          .set("reason", event.reason));
}

void Narrator::started(Happenings& out) {
  std::string pids;
  for (std::size_t i = 0; i < workers_.size() && i < kPidsShown; ++i) pids += format(" {}", workers_[i].pid);
  const int count = static_cast<int>(workers_.size());
  say(out, Level::kInfo, "workers_started",
      format("round {}: {} started, {}{}{}", round_.round, ranks_of(round_.place, count), plural("pid", count), pids,
             workers_.size() > kPidsShown ? " ..." : ""),
      with("round", whole(round_.round)).set("base_rank", round_.place.base_rank).set("workers", count));
}

void Narrator::take(const WorkerExited& event, Happenings& out) {
  const int rank = round_.place.base_rank + event.local_rank;
  const Worker& worker = workers_.at(static_cast<std::size_t>(event.local_rank));
  if (!event.exit.success()) why_ = format("rank {} {}", rank, event.exit.text());
  say(out, Level::kInfo, "worker_exited", format("round {}: rank {} {}", round_.round, rank, event.exit.text()),
      with("round", whole(round_.round))
          .set("rank", rank)
          .set("local_rank", event.local_rank)
          .set("pid", worker.pid)
          .set("exit_code", event.exit.python_code())
          .set("signal", event.exit.signal != 0 ? Json(signal_name(event.exit.signal)) : Json())
          .set("core_dumped", event.exit.core_dumped)
          .set("stopped_by_us", stopping_)
          .set("milliseconds", now_ms_ - worker.started_ms));
}

void Narrator::take(const SignalReceived& event, Happenings& out) {
  const std::string name = signal_name(event.signal);
  why_ = format("{} got {}", program_name(), name);
  const bool by_worker = event.worker != 0;
  say(out, Level::kDebug, "signal",
      by_worker ? format("got {} from process {}", name, event.worker) : format("got {}", name),
      with("signal", name).set("worker", by_worker ? Json(event.worker) : Json()));
}

void Narrator::carry(const CheckNode& effect, Happenings& out) {
  say(out, Level::kDebug, "check_began",
      format("round {}: the check of this node begins phase {}", effect.round, effect.phase),
      with("round", whole(effect.round)).set("phase", whole(effect.phase)));
}

void Narrator::take(const NodeChecked& event, Happenings& out) {
  say(out, Level::kDebug, "check_answered",
      format("round {}: the check of this node is done with phase {}", event.round, event.phase),
      with("round", whole(event.round)).set("phase", whole(event.phase)).set("result", event.result));
}

void Narrator::carry(const StartWorkers& effect, Happenings& out) {
  say(out, Level::kDebug, "round_began", format("round {}: begins on this node", effect.round.round),
      with("round", whole(effect.round.round))
          .set("store_address", effect.store.address)
          .set("store_port", effect.store.port));
}

void Narrator::carry(const SignalWorkers& effect, Happenings& out) {
  sent_signal_ = effect.signal;
  if (stopping_ && effect.signal == kSigKill) {
    return say(out, Level::kInfo, "workers_killed", format("round {}: SIGKILL to what is left", round_.round),
               with("round", whole(round_.round)));
  }
  const std::string name = signal_name(effect.signal);
  say(out, Level::kDebug, "signal_sent", format("{} to the workers", name), with("signal", name));
}

void Narrator::carry(const AwaitAllGone&, Happenings& out) {
  stopping_ = true;
  stopped_at_ms_ = now_ms_;
  const std::string signal = signal_name(sent_signal_);
  say(out, Level::kInfo, "stop",
      format("round {}: stopping what is left by {}: {}", round_.round, signal,
             why_.empty() ? "no reason is known" : why_),
      with("round", whole(round_.round)).set("signal", signal).set("reason", why_));
}

void Narrator::carry(const LeaveBackground&, Happenings& out) {
  left_background_ = true;
  say(out, Level::kInfo, "background_left",
      format("round {}: what its workers have left in the background is left alone", round_.round),
      with("round", whole(round_.round)));
}

void Narrator::carry(const CloseStore&, Happenings& out) {
  if (left_background_) return;
  say(out, Level::kInfo, "workers_gone",
      format("round {}: no process of its workers is left, {} ms after the stop", round_.round,
             now_ms_ - stopped_at_ms_),
      with("round", whole(round_.round)).set("milliseconds", now_ms_ - stopped_at_ms_));
}

void Narrator::carry(const Warn& effect, Happenings& out) {
  // Nothing that has happened is told of before: the link has seen it by the clock alone.
  if (effect.event == "lease_over") why_ = "the lease is over";
  say(out, Level::kWarning, effect.event, effect.text);
}

void Narrator::carry(const Finish& effect, Happenings& out) {
  const Verdict& verdict = effect.verdict;
  const bool well = verdict.outcome == Verdict::Outcome::kSucceeded;
  const bool failed = verdict.outcome == Verdict::Outcome::kFailed;
  const char* words = well ? "the job has succeeded" : failed ? "the job has failed" : "the job was stopped";
  say(out, Level::kInfo, "verdict",
      format("{}; {} of {} restarts were used", words, verdict.restarts_used, settings_.max_restarts),
      with("outcome", well     ? "succeeded"
                      : failed ? "failed"
                               : "stopped")
          .set("round", whole(verdict.round))
          .set("restarts_used", verdict.restarts_used)
          .set("reason", verdict.reason));
}

Happenings Narrator::waits_for(const std::optional<Waiting>& waiting, std::int64_t now_ms) {
  Happenings out;
  const bool waits = waiting && waiting->for_others;
  if (waits == waits_since_ms_.has_value()) return out;
  if (waits) {
    waits_since_ms_ = now_ms;
    say(out, Level::kDebug, "waiting_began", waiting->what);
  } else {
    const std::int64_t waited_ms = now_ms - *std::exchange(waits_since_ms_, std::nullopt);
    say(out, Level::kDebug, "waiting_ended", format("waited for others for {} ms", waited_ms),
        with("milliseconds", waited_ms));
  }
  return out;
}

Happenings Narrator::coordinator_is(bool reached, bool matters, const std::string& problem) {
  Happenings out;
  if (reached == std::exchange(reached_, reached)) return out;
  const std::string& endpoint = settings_.endpoint;
  const Json fields = with("endpoint", endpoint);
  if (reached && std::exchange(loss_told_, false)) {
    say(out, Level::kWarning, "coordinator_back", format("the coordinator at {} is back", endpoint), fields);
  } else if (reached) {
    say(out, Level::kDebug, "coordinator_found", format("the coordinator at {} is found", endpoint), fields);
  } else if (matters) {
    loss_told_ = true;
    say(out, Level::kWarning, "coordinator_lost",
        format("the coordinator at {} is lost: {}; looking for it while the workers go on, until their lease is over",
               endpoint, problem),
        Json(fields).set("reason", problem));
  } else {
    say(out, Level::kDebug, "coordinator_left", format("no session with the coordinator at {}: {}", endpoint, problem),
        Json(fields).set("reason", problem));
  }
  return out;
}

}  // namespace elastic::agent
