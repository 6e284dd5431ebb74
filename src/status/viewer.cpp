#include "src/status/viewer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "src/base/address.h"
#include "src/base/text.h"

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

Job counts_of(const Job& job);

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

constexpr std::array<std::pair<std::string_view, Page>, 4> kPages = {
    {{"/healthz", Page::kHealth}, {"/readyz", Page::kReady}, {"/status", Page::kStatus}, {"/metrics", Page::kMetrics}}};

constexpr std::string_view kScheme = "bearer ";

// Compares every byte that was sent, so that the time does not show where they differ.
bool is_same(std::string_view sent, std::string_view token) {
  unsigned differs = sent.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    differs |= static_cast<unsigned>(static_cast<unsigned char>(sent[i]) ^
                                     static_cast<unsigned char>(token[i % token.size()]));
  }
  return differs == 0;
}

}  // namespace

std::optional<Page> page_at(std::string_view path) {
  const auto found = std::ranges::find(kPages, path, &std::pair<std::string_view, Page>::first);
  if (found == kPages.end()) return {};
  return found->second;
}

bool has_token(std::string_view authorization, std::string_view token) {
  if (token.empty()) return false;
  if (lower(authorization.substr(0, kScheme.size())) != kScheme) return false;
  return is_same(trim(authorization.substr(kScheme.size())), token);
}

Readiness readiness(const std::optional<Node>& node) {
  if (!node) return {true, "the coordinator listens"};
  if (node->ready()) return {true, format("the workers of round {} run", node->round.value_or(0))};
  if (node->waits_for.empty()) return {false, std::string(name_of(node->activity))};
  return {false, format("{}: {}", name_of(node->activity), printable(node->waits_for, 1000))};
}

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
