#include "src/runtime/event_log.h"

#include <signal.h>

#include <variant>
#include <vector>

#include "src/base/log.h"
#include "src/base/signals.h"
#include "src/base/text.h"

namespace elastic::runtime {
namespace {

using protocol::Verdict;

// Numbers of processes that a line names at most.
constexpr std::size_t kPidsShown = 16;

// "rank 3", "ranks 0-3"
std::string ranks_of(const protocol::NodePlace& place, int workers) {
  if (workers == 1) return format("rank {}", place.base_rank);
  return format("ranks {}-{}", place.base_rank, place.base_rank + workers - 1);
}

using Tell = void (*)(std::string_view event, std::string_view text, log::Fields fields);

const char* plural(std::int64_t count) { return count == 1 ? "" : "s"; }

}  // namespace

void EventLog::began() const {
  const int workers = settings_.node.local_world_size;
  log::info("launch",
            format("run {}: {} worker{} on this node, {} restart{} at most: {}", settings_.worker.run_id, workers,
                   plural(workers), settings_.max_restarts, plural(settings_.max_restarts), settings_.title),
            {{"run_id", settings_.worker.run_id},
             {"local_world_size", workers},
             {"max_restarts", settings_.max_restarts},
             {"title", settings_.title}});
}

void EventLog::happened(const agent::Event& event, std::int64_t now_ms) {
  now_ms_ = now_ms;
  why_.clear();
  std::visit([this](const auto& known) { take(known); }, event);
}

void EventLog::take(const agent::FromCoordinator& event) {
  if (const auto* round = std::get_if<protocol::PrepareRound>(&event.message)) return prepared(*round);
  if (std::holds_alternative<protocol::StopWorkers>(event.message)) why_ = "the coordinator has ordered it";
  if (const auto* end = std::get_if<protocol::EndJob>(&event.message)) {
    why_ = end->verdict.outcome == Verdict::Outcome::kSucceeded ? "all workers have succeeded" : "the job has ended";
  }
}

void EventLog::prepared(const protocol::PrepareRound& round) {
  round_ = round;
  pids_.clear();
  stopping_ = false;
  const protocol::NodePlace& place = round.place;
  // Among many nodes a round is news to the user of each.
  const auto tell = settings_.meeting.alone ? static_cast<Tell>(log::info) : log::answer;
  const std::string why = round.reason.empty() ? "" : format(": {}", round.reason);
  const std::string ranks = ranks_of(place, settings_.node.local_world_size);
  const std::string text =
      settings_.meeting.alone
          ? format("round {}: prepared, restart {} of {}; node {} of {}, {} of {}", round.round, round.restart_count,
                   round.max_restarts, place.node_rank, place.node_count, ranks, place.world_size)
          : format("round {}: {} node{}, {} worker{}; this is node {}, {}; restart {} of {}{}", round.round,
                   place.node_count, plural(place.node_count), place.world_size, plural(place.world_size),
                   place.node_rank, ranks, round.restart_count, round.max_restarts, why);
  tell("round_prepared", text,
       {{"round", round.round},
        {"restart_count", round.restart_count},
        {"node_rank", place.node_rank},
        {"node_count", place.node_count},
        {"base_rank", place.base_rank},
        {"world_size", place.world_size},
        {"reason", round.reason}});
}

void EventLog::take(const agent::StoreOpened& event) {
  log::info("store_open",
            event.endpoint.address.empty()
                ? format("round {}: the worker store is open at port {}", round_.round, event.endpoint.port)
                : format("round {}: the worker store is at {}:{}", round_.round, event.endpoint.address,
                         event.endpoint.port),
            {{"round", round_.round}, {"address", event.endpoint.address}, {"port", event.endpoint.port}});
}

void EventLog::take(const agent::LogsOpened& event) {
  if (settings_.logs.enabled) {
    log::debug("logs_open", format("round {}: log directories are there", event.round), {{"round", event.round}});
  }
}

void EventLog::take(const agent::WorkerStarted& event) {
  const int rank = round_.place.base_rank + event.local_rank;
  log::debug("worker_started", format("round {}: rank {} started, pid {}", round_.round, rank, event.pid),
             {{"round", round_.round}, {"rank", rank}, {"local_rank", event.local_rank}, {"pid", event.pid}});
  pids_.push_back(event.pid);
  if (static_cast<int>(pids_.size()) == settings_.node.local_world_size) started();
}

void EventLog::started() {
  std::string pids;
  for (std::size_t i = 0; i < pids_.size() && i < kPidsShown; ++i) pids += format(" {}", pids_[i]);
  const int count = static_cast<int>(pids_.size());
  log::info("workers_started",
            format("round {}: {} started, pid{}{}{}", round_.round, ranks_of(round_.place, count), plural(count), pids,
                   pids_.size() > kPidsShown ? " ..." : ""),
            {{"round", round_.round}, {"base_rank", round_.place.base_rank}, {"workers", count}});
}

void EventLog::take(const agent::WorkerExited& event) {
  const int rank = round_.place.base_rank + event.local_rank;
  if (!event.exit.success()) why_ = format("rank {} {}", rank, event.exit.text());
  log::info("worker_exited",
            format("round {}: rank {} {}", round_.round, rank, event.exit.text()),
            {{"round", round_.round},
             {"rank", rank},
             {"local_rank", event.local_rank},
             {"pid", pids_.at(static_cast<std::size_t>(event.local_rank))},
             {"exit_code", event.exit.python_code()}});
}

void EventLog::take(const agent::SignalReceived& event) {
  const std::string name = signal_name(event.signal);
  why_ = format("elastic-run got {}", name);
  log::debug("signal", format("got {}", name), {{"signal", name}});
}

void EventLog::decided(const agent::Effect& effect) {
  if (const auto* send = std::get_if<agent::SignalWorkers>(&effect)) {
    sent_signal_ = send->signal;
    const bool kills = stopping_ && send->signal == SIGKILL;
    if (kills) {
      log::info("workers_killed", format("round {}: SIGKILL to what is left", round_.round), {{"round", round_.round}});
    } else {
      log::debug("signal_sent", format("{} to the workers", signal_name(send->signal)),
                 {{"signal", signal_name(send->signal)}});
    }
  }
  if (std::holds_alternative<agent::AwaitAllGone>(effect)) stop_ordered();
  if (std::holds_alternative<agent::CloseStore>(effect)) {
    log::info("workers_gone",
              format("round {}: no process of its workers is left, {} ms after the stop", round_.round,
                     now_ms_ - stopped_at_ms_),
              {{"round", round_.round}, {"milliseconds", now_ms_ - stopped_at_ms_}});
  }
  if (const auto* end = std::get_if<agent::Finish>(&effect)) ended(end->verdict);
}

void EventLog::stop_ordered() {
  stopping_ = true;
  stopped_at_ms_ = now_ms_;
  log::info("stop", format("round {}: stopping what is left by {}: {}", round_.round, signal_name(sent_signal_),
                           why_.empty() ? "no reason is known" : why_),
            {{"round", round_.round}, {"signal", signal_name(sent_signal_)}, {"reason", why_}});
}

void EventLog::ended(const Verdict& verdict) const {
  const bool well = verdict.outcome == Verdict::Outcome::kSucceeded;
  const char* outcome = well ? "succeeded" : verdict.outcome == Verdict::Outcome::kFailed ? "failed" : "stopped";
  const char* words = well ? "the job has succeeded"
                      : verdict.outcome == Verdict::Outcome::kFailed ? "the job has failed"
                                                                     : "the job was stopped";
  log::info("verdict", format("{}; {} of {} restarts were used", words, verdict.restarts_used, settings_.max_restarts),
            {{"outcome", outcome},
             {"round", verdict.round},
             {"restarts_used", verdict.restarts_used},
             {"reason", verdict.reason}});
}

}  // namespace elastic::runtime
