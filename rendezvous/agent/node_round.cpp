#include "rendezvous/agent/node_round.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::agent {

using namespace protocol;

void NodeRound::begin(const PrepareRound& order, int local_world_size, Effects& out) {
  order_ = order;
  workers_.assign(static_cast<std::size_t>(local_world_size), Worker{});
  failures_.clear();
  crash_.reset();
  if (order.reason.empty()) return;
  const std::string count =
      order.charged ? format("restart {} of {}", order.restart_count, order.max_restarts) : "not counted as a restart";
  out.push_back(
      Warn{format("{}; {} all workers ({})", order.reason, has_run_ ? "restarting" : "starting", count), "restart"});
}

NodeRound::Worker& NodeRound::worker(int local_rank) {
  ELASTIC_CHECK(local_rank >= 0 && static_cast<std::size_t>(local_rank) < workers_.size());
  return workers_[static_cast<std::size_t>(local_rank)];
}

void NodeRound::started(const WorkerStarted& event) {
  Worker& begun = worker(event.local_rank);
  ELASTIC_CHECK(begun.pid == 0 && event.pid != 0);
  begun.pid = event.pid;
  begun.start = event.start;
}

void NodeRound::exited(const WorkerExited& event, bool stopped_by_us) {
  Worker& ended = worker(event.local_rank);
  ELASTIC_CHECK(!ended.exited);
  ended.exited = true;
  if (event.exit.success()) return;
  WorkerFailure failure = about_to_fail(event.local_rank);
  failure.exit = event.exit;
  failure.wall_ms = event.wall_ms;
  failure.stopped_by_us = stopped_by_us;
  failures_.insert(stopped_by_us ? failures_.end() : failures_.begin(), std::move(failure));
}

WorkerFailure NodeRound::about_to_fail(int local_rank) const {
  const Worker& worker = workers_.at(static_cast<std::size_t>(local_rank));
  return {.rank = order_.place.base_rank + local_rank,
          .local_rank = local_rank,
          .node_rank = order_.place.node_rank,
          .pid = worker.pid,
          .exit = {},
          .start = worker.start,
          .error_file_ms = worker.error_file_ms};
}

bool NodeRound::has_company(int local_rank) const {
  if (order_.place.node_count > 1) return true;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (static_cast<int>(i) != local_rank && workers_[i].runs()) return true;
  }
  return false;
}

void NodeRound::check_invariants() const {
  const auto ended = std::ranges::count_if(workers_, &Worker::exited);
  ELASTIC_CHECK(failures_.size() <= static_cast<std::size_t>(ended));
  // The first failure stops the round, so that all others are consequences.
  const bool one_cause = failures_.size() < 2 || std::all_of(failures_.begin() + 1, failures_.end(),
                                                             [](const auto& failure) { return failure.stopped_by_us; });
  ELASTIC_CHECK(one_cause);
  ELASTIC_CHECK(!crash_ || cause() != nullptr);
}

bool NodeRound::all_have_ended() const { return std::ranges::all_of(workers_, &Worker::exited); }

const WorkerFailure* NodeRound::cause() const {
  return failures_.empty() || failures_.front().stopped_by_us ? nullptr : &failures_.front();
}

bool NodeRound::was_ended_from_outside() const {
  if (cause() == nullptr) return false;
  const int signal = cause()->exit.signal;
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

bool NodeRound::is_cause_of(const JobResult& job_result) const {
  if (job_result.outcome != JobResult::Outcome::kFailed || job_result.round != order_.round) return false;
  const auto first = std::ranges::find(job_result.failures, false, &WorkerFailure::stopped_by_us);
  if (first == job_result.failures.end() || first->node_rank != order_.place.node_rank) return false;
  return std::ranges::any_of(failures_, [&](const WorkerFailure& own) {
    return own.rank == first->rank && own.pid == first->pid && own.wall_ms == first->wall_ms;
  });
}

std::string NodeRound::who_is_left() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].runs()) ranks.push_back(rank(i));
  }
  if (ranks.empty()) return "processes that workers left running";
  return format("{} to end ({} {})", counted(ranks.size(), "worker"), plural("rank", ranks.size()), rank_ranges(ranks));
}

void NodeRound::report(AgentFacts& facts) const {
  if (order_.membership == 0) return;  // no round yet
  facts.round = order_.round;
  facts.place = order_.place;
  facts.restart_count = order_.restart_count;
  facts.losses = order_.losses;
  facts.membership = order_.membership;
  facts.failures = failures_;
  facts.birth_ms = order_.fence.birth_ms;
  facts.transferred = order_.transferred;
}

void NodeRound::report(status::Node& node) const {
  if (order_.membership == 0) return;  // no round yet
  node.round = order_.round;
  node.node_rank = order_.place.node_rank;
  node.node_count = order_.place.node_count;
  node.world_size = order_.place.world_size;
  node.restart_count = order_.restart_count;
  node.max_restarts = order_.max_restarts;
  if (!workers_.empty() && workers_.front().pid != 0) node.start = workers_.front().start;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    node.workers.push_back(
        {.local_rank = static_cast<int>(i), .rank = rank(i), .pid = workers_[i].pid, .running = workers_[i].runs()});
  }
}

}  // namespace elastic::agent
