#include "src/status/viewer.h"

#include <algorithm>
#include <iterator>

#include "src/base/address.h"
#include "src/status/paths.h"

namespace elastic::status {
namespace {

Failure counts_of(const Failure& failure) {
  return {.round = failure.round,
          .cause = failure.cause,
          .node_rank = failure.node_rank,
          .rank = failure.rank,
          .age_ms = failure.age_ms};
}

Check counts_of(const Check& check) {
  return {.round = check.round,
          .fit = check.fit,
          .slow = check.slow,
          .faulty = check.faulty,
          .undetermined = check.undetermined,
          .bad_links = check.bad_links,
          .seconds = check.seconds,
          .slowest_busbw_bytes = check.slowest_busbw_bytes};
}

Member counts_of(const Member& member) {
  return {.place = member.place,
          .node_rank = member.node_rank,
          .workers = member.workers,
          .hosts_coordinator = member.hosts_coordinator,
          .silent_ms = member.silent_ms,
          .progress = member.progress};
}

Hang counts_of(const Hang& hang) {
  return {.round = hang.round,
          .rule = hang.rule,
          .verdict = hang.verdict,
          .fault = hang.fault,
          .ranks = hang.ranks,
          .silent_ms = hang.silent_ms,
          .age_ms = hang.age_ms,
          .is_over = hang.is_over};
}

HangLine counts_of(const HangLine& hang) {
  return {.state = hang.state,
          .silent_ms = hang.silent_ms,
          .limit_ms = hang.limit_ms,
          .limit_from = hang.limit_from,
          .phase = hang.phase,
          .told = hang.told,
          .recovered = hang.recovered,
          .withdrawn = hang.withdrawn,
          .last = hang.last ? std::optional(counts_of(*hang.last)) : std::nullopt};
}

EndedJob counts_of(const EndedJob& job) { return {.id = job.id, .outcome = job.outcome}; }

Worker counts_of(const Worker& worker) {
  return {.local_rank = worker.local_rank, .rank = worker.rank, .running = worker.running, .progress = worker.progress};
}

template <class Each>
std::vector<Each> counts_of(const std::vector<Each>& all) {
  std::vector<Each> out;
  std::ranges::transform(all, std::back_inserter(out), [](const Each& each) { return counts_of(each); });
  return out;
}

Job counts_of(const Job& job) {
  return {.id = job.id,
          .phase = job.phase,
          .phase_for_ms = job.phase_for_ms,
          .round = job.round,
          .world_size = job.world_size,
          .min_nodes = job.min_nodes,
          .max_nodes = job.max_nodes,
          .restarts_charged = job.restarts_charged,
          .max_restarts = job.max_restarts,
          .node_losses = job.node_losses,
          .nodes = job.nodes,
          .rounds = job.rounds,
          .restarts = job.restarts,
          .lost_work_ms = job.lost_work_ms,
          .phase_ms = job.phase_ms,
          .failures = counts_of(job.failures),
          .checks = job.checks,
          .check = job.check ? std::optional(counts_of(*job.check)) : std::nullopt,
          .newest = job.newest,
          .oldest = job.oldest,
          .speakers = job.speakers,
          .hang = counts_of(job.hang),
          .members = counts_of(job.members),
          .members_left_out = job.members_left_out};
}

std::vector<Job> counts_of(const std::vector<Job>& jobs) {
  std::vector<Job> out;
  for (const Job& job : jobs) out.push_back(counts_of(job));
  return out;
}

Coordinator counts_of(const Coordinator& coordinator) {
  return {.jobs = counts_of(coordinator.jobs),
          .connections = coordinator.connections,
          .ended = coordinator.ended,
          .last_ended = counts_of(coordinator.last_ended)};
}

Store counts_of(const Store& store) {
  return {.operations = store.operations, .connections = store.connections, .keys = store.keys, .bytes = store.bytes};
}

Node counts_of(const Node& node) {
  return {.job = node.job,
          .activity = node.activity,
          .round = node.round,
          .node_rank = node.node_rank,
          .node_count = node.node_count,
          .world_size = node.world_size,
          .restart_count = node.restart_count,
          .max_restarts = node.max_restarts,
          .workers = counts_of(node.workers),
          .start = node.start,
          .warm = {.state = node.warm.state, .waiting = node.warm.waiting},
          .workers_started = node.workers_started,
          .workers_failed = node.workers_failed,
          .warm_started = node.warm_started,
          .spared_cpu_ms = node.spared_cpu_ms,
          .hosts_coordinator = node.hosts_coordinator,
          .connected = node.connected,
          .store = counts_of(node.store),
          .progress = node.progress};
}

}  // namespace

View view_of(const AccessRules& access, std::string_view authorization, std::string_view peer_address) {
  if (access.are_open) return View::kAll;
  if (access.key.empty()) return is_loopback(peer_address) ? View::kAll : View::kCounts;
  if (authorization.empty()) return View::kCounts;
  return has_token(authorization, access.key) ? View::kAll : View::kRefused;
}

bool may_be_led(const AccessRules& access, View view) {
  return view == View::kAll || (view == View::kCounts && access.key.empty());
}

Snapshot counts_only(const Snapshot& snapshot) {
  return {.version = snapshot.version,
          .uptime_ms = snapshot.uptime_ms,
          .node = snapshot.node ? std::optional(counts_of(*snapshot.node)) : std::nullopt,
          .coordinator = snapshot.coordinator ? std::optional(counts_of(*snapshot.coordinator)) : std::nullopt,
          .http_answers = snapshot.http_answers,
          .counts_only = true};
}

}  // namespace elastic::status
