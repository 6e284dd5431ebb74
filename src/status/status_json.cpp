#include "src/status/status_json.h"

#include <utility>

#include "src/base/json.h"

namespace elastic::status {
namespace {

// Milliseconds as seconds, with three decimals.
Json seconds(std::int64_t ms) { return Json(static_cast<double>(ms) / 1000); }
template <class Number>
Json or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json();
}

template <class Name, class Array>
Json by_name(const Array& values, bool is_seconds = false) {
  Json out = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.set(name_of(static_cast<Name>(i)), is_seconds ? seconds(values[i]) : Json(values[i]));
  }
  return out;
}

Json json_of(const Failure& failure) {
  return Json::object()
      .set("round", failure.round)
      .set("cause", name_of(failure.cause))
      .set("node", failure.node)
      .set("node_rank", or_null(failure.node_rank))
      .set("rank", or_null(failure.rank))
      .set("text", failure.text)
      .set("age_seconds", seconds(failure.age_ms));
}

Json json_of(const Check& check) {
  return Json::object()
      .set("round", check.round)
      .set("fit", check.fit)
      .set("slow", check.slow)
      .set("faulty", check.faulty)
      .set("undetermined", check.undetermined)
      .set("bad_links", check.bad_links)
      .set("duration_seconds", check.seconds)
      .set("slowest_busbw_bytes_per_second", or_null(check.slowest_busbw_bytes));
}

Json json_of(const std::optional<Progress>& progress) {
  if (!progress) return {};
  const auto& rate = progress->millisteps_per_second;
  return Json::object()
      .set("rank", or_null(progress->rank))
      .set("step", or_null(progress->step))
      .set("steps_per_second", rate ? Json(static_cast<double>(*rate) / 1000) : Json())
      .set("age_seconds", seconds(progress->age_ms))
      .set("source", progress->source)
      .set("phase", progress->phase);
}

template <class Values>
Json plain_list_of(const Values& values) {
  Json out = Json::array();
  for (const auto& value : values) out.push(Json(value));
  return out;
}

Json json_of(const Hang& hang) {
  return Json::object()
      .set("round", hang.round)
      .set("rule", hang.rule)
      .set("verdict", hang.verdict)
      .set("fault", hang.fault)
      .set("cause", hang.cause)
      .set("ranks", plain_list_of(hang.ranks))
      .set("nodes", plain_list_of(hang.nodes))
      .set("silent_seconds", seconds(hang.silent_ms))
      .set("age_seconds", seconds(hang.age_ms))
      .set("over", hang.is_over);
}

Json json_of(const HangLine& hang) {
  return Json::object()
      .set("state", name_of(hang.state))
      .set("silent_seconds", seconds(hang.silent_ms))
      .set("limit_seconds", hang.limit_ms ? seconds(*hang.limit_ms) : Json())
      .set("limit_from", hang.limit_from)
      .set("phase", hang.phase)
      .set("told", hang.told)
      .set("recovered", hang.recovered)
      .set("withdrawn", hang.withdrawn)
      .set("last", hang.last ? json_of(*hang.last) : Json());
}

Json json_of(const Member& member) {
  return Json::object()
      .set("name", member.name)
      .set("state", name_of(member.place))
      .set("node_rank", or_null(member.node_rank))
      .set("workers", member.workers)
      .set("hosts_coordinator", member.hosts_coordinator)
      .set("silent_seconds", seconds(member.silent_ms))
      .set("door", member.peer_address)
      .set("progress", json_of(member.progress));
}

Json json_of(const Job& job);
Json json_of(const EndedJob& job);
Json json_of(const Worker& worker);

template <class Values>
Json list_of(const Values& values) {
  Json out = Json::array();
  for (const auto& value : values) out.push(json_of(value));
  return out;
}

Json json_of(const Job& job) {
  return Json::object()
      .set("run_id", job.id)
      .set("phase", name_of(job.phase))
      .set("phase_for_seconds", seconds(job.phase_for_ms))
      .set("round", or_null(job.round))
      .set("because", job.again_because)
      .set("world_size", job.world_size)
      .set("min_nodes", job.min_nodes)
      .set("max_nodes", job.max_nodes)
      .set("restarts_charged", job.restarts_charged)
      .set("max_restarts", job.max_restarts)
      .set("node_losses", job.node_losses)
      .set("nodes", by_name<MemberPlace>(job.nodes))
      .set("rounds", by_name<RoundCause>(job.rounds))
      .set("restarts", by_name<RoundCause>(job.restarts))
      .set("phase_seconds", by_name<JobPhase>(job.phase_ms, true))
      .set("lost_work_seconds", by_name<RoundCause>(job.lost_work_ms, true))
      .set("failures", list_of(job.failures))
      .set("checks", job.checks)
      .set("check", job.check ? json_of(*job.check) : Json())
      .set("progress", json_of(job.newest))
      .set("progress_oldest", json_of(job.oldest))
      .set("progress_ranks", job.speakers)
      .set("hang", json_of(job.hang))
      .set("members", list_of(job.members))
      .set("members_left_out", static_cast<std::int64_t>(job.members_left_out));
}

Json json_of(const EndedJob& job) {
  return Json::object().set("run_id", job.id).set("outcome", name_of(job.outcome)).set("reason", job.reason);
}

Json json_of(const Coordinator& coordinator) {
  return Json::object()
      .set("connections", coordinator.connections)
      .set("jobs", list_of(coordinator.jobs))
      .set("jobs_ended", by_name<Outcome>(coordinator.ended))
      .set("last_ended", list_of(coordinator.last_ended));
}

Json json_of(const Worker& worker) {
  return Json::object()
      .set("local_rank", worker.local_rank)
      .set("rank", worker.rank)
      .set("pid", worker.pid > 0 ? Json(worker.pid) : Json())
      .set("running", worker.running)
      .set("progress", json_of(worker.progress));
}

Json json_of(const WarmWorkers& warm) {
  return Json::object().set("state", name_of(warm.state)).set("waiting", warm.waiting).set("why", warm.why);
}

Json json_of(const Store& store) {
  Json operations = Json::object();
  for (const auto& [name, count] : store.operations) operations.set(name, count);
  return Json::object()
      .set("operations", std::move(operations))
      .set("connections", store.connections)
      .set("keys", store.keys)
      .set("bytes", store.bytes);
}

Json json_of(const Node& node) {
  return Json::object()
      .set("run_id", node.job)
      .set("name", node.name)
      .set("state", name_of(node.activity))
      .set("ready", node.ready())
      .set("waits_for", node.waits_for)
      .set("round", or_null(node.round))
      .set("node_rank", node.node_rank)
      .set("node_count", node.node_count)
      .set("world_size", node.world_size)
      .set("restart_count", node.restart_count)
      .set("max_restarts", node.max_restarts)
      .set("workers", list_of(node.workers))
      .set("start", node.start ? Json(elastic::name_of(*node.start)) : Json())
      .set("warm_workers", json_of(node.warm))
      .set("workers_started", node.workers_started)
      .set("workers_failed", node.workers_failed)
      .set("workers_started_warm", node.warm_started)
      .set("spared_cpu_seconds", seconds(node.spared_cpu_ms))
      .set("hosts_coordinator", node.hosts_coordinator)
      .set("endpoint", node.endpoint)
      .set("coordinator_at", node.coordinator_at)
      .set("connected", node.connected)
      .set("progress", json_of(node.progress))
      .set("store", json_of(node.store));
}

}  // namespace

std::string status_json(const Snapshot& snapshot) {
  return Json::object()
             .set("format", kStatusFormat)
             .set("version", snapshot.version)
             .set("counts_only", snapshot.counts_only)
             .set("uptime_seconds", seconds(snapshot.uptime_ms))
             .set("node", snapshot.node ? json_of(*snapshot.node) : Json())
             .set("coordinator", snapshot.coordinator ? json_of(*snapshot.coordinator) : Json())
             .dump() +
         "\n";
}

}  // namespace elastic::status
