#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"
#include "src/status/snapshot.h"

namespace elastic::agent {

// The last round on this node: the order that prepared it, its workers, and how they ended. It is kept until the next
// round begins, because status and reports speak of a round that is over, too.
class NodeRound {
 public:
  // A round begins, with this many workers on this node; nothing of the one before is kept. Warns of why it begins, if
  // the coordinator has said so.
  void begin(const protocol::PrepareRound& order, int local_world_size, Effects& out);
  void start() { has_run_ = true; }
  // A worker of the round was started; called once for each.
  void started(const WorkerStarted& event);
  // A worker of the round has ended, once. `stopped_by_us`: this node was stopping it by then, so that a failure is a
  // consequence of that.
  void exited(const WorkerExited& event, bool stopped_by_us);
  // The worker's error file was seen, for which this node stops the round.
  void stops_for_error_file(int local_rank, std::int64_t wall_ms) { worker(local_rank).error_file_ms = wall_ms; }
  // What identifies the first failure if it comes again; empty if nothing does.
  void found(std::optional<protocol::Crash> crash) { crash_ = crash; }

  // The transferred state that a coordinator that takes over gets from this node from now on.
  void keep(const protocol::KeepState& message) {
    if (message.round == order_.round) order_.transferred = message.transferred;
  }

  // The order that began the round. Before the first round all its members are zero.
  const protocol::PrepareRound& order() const { return order_; }
  protocol::RoundNumber number() const { return order_.round; }
  const protocol::NodePlace& place() const { return order_.place; }
  bool all_have_ended() const;
  bool runs(int local_rank) const { return workers_.at(static_cast<std::size_t>(local_rank)).runs(); }
  // Another worker than this one runs, on this node or, as far as is known, on another one.
  bool has_company(int local_rank) const;
  // The first failure, and then those of workers that were stopped, in the order in which they ended.
  const std::vector<protocol::WorkerFailure>& failures() const { return failures_; }
  // The first failure, unless this node had stopped the worker; null: there is none.
  const protocol::WorkerFailure* cause() const;
  // That failure is a death by a signal that is sent to whole process trees, perhaps to elastic-run, too.
  bool was_ended_from_outside() const;
  // The root cause of the job's failure is one of these workers.
  bool is_cause_of(const protocol::JobResult& job_result) const;
  // "2 workers to end (ranks 4, 6)"; without workers that run, the processes that they have left running.
  std::string who_is_left() const;

  // What the coordinator is told when no process of the round is left.
  protocol::NodeStopped stopped() const { return {order_.round, failures_, crash_}; }
  // What it is told of a worker that has not ended, but is about to fail.
  protocol::WorkerFailure about_to_fail(int local_rank) const;
  // Both do nothing before the first round.
  void report(protocol::AgentFacts& facts) const;
  void report(status::Node& node) const;

  // Called after each event.
  void check_invariants() const;

 private:
  friend struct LifecycleBreaker;  // a test's

  struct Worker {
    std::int64_t pid = 0;  // 0: not started
    bool exited = false;
    WorkerStart start = WorkerStart::kFresh;
    std::int64_t error_file_ms = 0;  // WorkerFailure::error_file_ms
    bool runs() const { return pid != 0 && !exited; }
  };

  Worker& worker(int local_rank);
  int rank(std::size_t local_rank) const { return order_.place.base_rank + static_cast<int>(local_rank); }

  protocol::PrepareRound order_;
  std::vector<Worker> workers_;  // by local rank
  bool has_run_ = false;         // workers were started in this round or an earlier one
  std::vector<protocol::WorkerFailure> failures_;
  std::optional<protocol::Crash> crash_;
};

}  // namespace elastic::agent
