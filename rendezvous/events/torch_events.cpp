#include "rendezvous/events/torch_events.h"

#include <utility>
#include <variant>

#include "src/base/python_json.h"
#include "src/base/text.h"

namespace elastic::events {

using namespace agent;

namespace {

using protocol::JobResult;

// PyTorch writes no error file that is deeper or has more members.
constexpr std::size_t kMostLevels = 64;
constexpr std::size_t kMostMembers = 1000;

// A list of one: PyTorch makes tuples of these fields.
Json one(Json value) {
  Json list = Json::array();
  list.push(std::move(value));
  return list;
}

// The content of an error file; empty if it is not one.
std::optional<Json> error_in(const std::string& file) {
  if (file.empty() || !json_over_bounds(file, kMostLevels, kMostMembers).empty()) return {};
  auto json = Json::parse(file, "an error file");
  if (!json || json->find("message") == nullptr) return {};
  return std::move(*json);
}

// What PyTorch says of a failure without an error file.
Json unknown_error(bool has_traits) {
  Json unknown = Json::object().set("message", "<NONE>");
  if (!has_traits) return unknown;
  return unknown.set("errorTraits",
                     Json::object().set("category", "system_terminated_error").set("retryability", "False"));
}

}  // namespace

std::string TorchEvents::on_event(const Event& event, double now_ms) {
  if (const auto* told = std::get_if<FromCoordinator>(&event)) {
    const auto* round = std::get_if<protocol::PrepareRound>(&told->message);
    if (round == nullptr) return {};
    round_ = *round;
    restart_count_ = round->restart_count;
    prepared_ms_ = now_ms;
    workers_.clear();
    all_started_ = false;
    return agent_event("RENDEZVOUS", now_ms - waits_since_ms_);
  }
  if (const auto* started = std::get_if<WorkerStarted>(&event)) {
    workers_.push_back({.pid = started->pid});
    if (static_cast<int>(workers_.size()) < settings_.local_world_size) return {};
    all_started_ = true;
    std::string lines;
    for (int rank = 0; rank < settings_.local_world_size; ++rank) lines += worker_event("START", rank, Json());
    return lines;
  }
  if (const auto* exited = std::get_if<WorkerExited>(&event)) {
    workers_.at(static_cast<std::size_t>(exited->local_rank)).exit = exited->exit;
  }
  return {};
}

std::string TorchEvents::on_effect(const Effect& effect, double now_ms) {
  if (std::holds_alternative<StartWorkers>(effect)) {
    std::string lines = agent_event("ASSIGN_WORKER_RANKS", now_ms - prepared_ms_);
    group_rank_ = round_.place.node_rank;
    group_size_ = round_.place.node_count;
    return lines;
  }
  if (std::holds_alternative<CloseStore>(effect)) waits_since_ms_ = now_ms;
  if (std::holds_alternative<Finish>(effect)) ran_s_ = static_cast<std::int64_t>((now_ms - began_ms_) / 1000);
  return {};
}

std::string TorchEvents::ended(const JobResult& job_result, const std::vector<std::string>& error_files) const {
  const bool well = job_result.outcome == JobResult::Outcome::kSucceeded;
  // In PyTorch's events an agent whose workers fail has succeeded; it fails if it could not run them to their end.
  const bool agent_failed =
      job_result.outcome == JobResult::Outcome::kStopped || (!well && job_result.failures.empty()) || !all_started_;
  if (agent_failed) return agent_event(well ? "SUCCEEDED" : "FAILED", {}, job_result.reason);
  // PyTorch's processes without an error file share one object for what is known of their failure, so that all have the
  // traits that one of them gets for an exit code.
  bool has_traits = false;
  std::vector<std::optional<Json>> errors(workers_.size());
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    if (!workers_[rank].failed()) continue;
    if (rank < error_files.size()) errors[rank] = error_in(error_files[rank]);
    has_traits = has_traits || (!errors[rank] && workers_[rank].exit->signal == 0);
  }
  std::string lines;
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const bool failed = workers_[rank].failed();
    const char* state = well ? "SUCCEEDED" : failed ? "FAILED" : "TERMINATED";
    const Json error = failed && !well ? Json(python_json(errors[rank].value_or(unknown_error(has_traits)))) : Json();
    lines += worker_event(state, static_cast<int>(rank), error);
  }
  return lines + agent_event("SUCCEEDED", {});
}

std::string TorchEvents::agent_event(const char* state, std::optional<double> duration_ms,
                                     const std::string& raw_error) const {
  return line(state, nullptr, 0, raw_error.empty() ? Json() : Json(raw_error),
              duration_ms ? Json(*duration_ms) : Json());
}

std::string TorchEvents::worker_event(const char* state, int local_rank, const Json& raw_error) const {
  return line(state, &workers_.at(static_cast<std::size_t>(local_rank)), local_rank, raw_error, Json());
}

std::string TorchEvents::line(const char* state, const Worker* worker, int local_rank, const Json& raw_error,
                              Json duration_ms) const {
  Json inner = Json::object().set("group_world_size", group_size_).set("entry_point", settings_.entry_point);
  if (worker != nullptr) {
    const bool is_failure = !raw_error.is_null();
    inner.set("local_rank", one(local_rank))
        .set("role_rank", one(round_.place.base_role_rank + local_rank))
        .set("role_world_size", one(round_.place.role_world_size))
        .set("exit_code", one(is_failure ? Json(worker->exit->python_code()) : Json()))
        .set("worker_pid", one(is_failure ? Json(worker->pid) : Json()));
  }
  Json metadata = Json::object()
                      .set("run_id", settings_.run_id)
                      .set("global_rank", worker ? Json(round_.place.base_rank + local_rank) : Json())
                      .set("group_rank", group_rank_)
                      .set("worker_id", worker ? Json(format("{}", worker->pid)) : Json())
                      .set("role", settings_.role)
                      .set("hostname", settings_.host)
                      .set("state", state)
                      .set("total_run_time", ran_s_)
                      .set("rdzv_backend", settings_.backend)
                      .set("raw_error", raw_error)
                      .set("metadata", python_json(inner))
                      .set("agent_restarts", restart_count_)
                      .set("duration_ms", std::move(duration_ms));
  return python_json(Json::object()
                         .set("name", format("torchelastic.worker.status.{}", state))
                         .set("source", worker ? "WORKER" : "AGENT")
                         .set("timestamp", 0)
                         .set("metadata", std::move(metadata))) +
         "\n";
}

}  // namespace elastic::events
