#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "src/base/exit_status.h"

// What agents and the coordinator tell each other, as plain values. Today they meet in one process; the
// same values will be carried by sessions between nodes.
namespace elastic::protocol {

// A node within its job, from the coordinator's point of view.
using NodeId = std::uint32_t;

// One membership of the job, counted from 0.
using RoundNumber = std::uint32_t;

// What a restart replaces. Only `kJob` is produced today.
enum class RestartScope { kRank, kNode, kJob };

// Where the workers of a round find their store.
struct StoreEndpoint {
  std::string address;
  std::uint16_t port = 0;
  bool operator==(const StoreEndpoint&) const = default;
};

// One worker that ended otherwise than by exit code 0, or could not be started.
struct WorkerFailure {
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  std::int64_t pid = 0;
  ExitStatus exit;
  std::int64_t wall_ms = 0;  // Unix time in milliseconds, by the node's clock
  bool stopped_by_us = false;  // it ended after its group had been told to

  // "rank 5 (node 1, local rank 1, pid 4711) was killed by SIGKILL"
  std::string text() const;
};

// A node's place in a round: the sizes and bases from which each worker's ranks follow.
struct NodePlace {
  int node_rank = 0;
  int node_count = 0;
  int base_rank = 0;
  int world_size = 0;
  int base_role_rank = 0;
  int role_world_size = 0;
  bool operator==(const NodePlace&) const = default;
};

// Why the job is over, for every node's report and exit status.
struct Verdict {
  enum class Outcome { kSucceeded, kFailed, kStopped };
  Outcome outcome = Outcome::kSucceeded;
  std::string reason = {};  // a sentence; empty on success
  RoundNumber round = 0;
  int restarts_used = 0;
  int signal = 0;                        // kStopped: the signal that asked for it
  std::vector<WorkerFailure> failures = {};  // of the last round, the first one first
  // Processes of this node that did not end even when killed; each node fills it in for its own report.
  std::string left_behind = {};
};

// Agent to coordinator.
struct NodeJoins {
  int local_world_size = 0;
  std::string role;
};
struct StoreIsOpen {
  RoundNumber round = 0;
  StoreEndpoint endpoint;
};
struct WorkerFailed {
  RoundNumber round = 0;
  WorkerFailure failure;
};
struct WorkersSucceeded {
  RoundNumber round = 0;
};
// The node cannot run this round's workers at all (a program that cannot be executed, a port in use).
struct NodeCannotRun {
  RoundNumber round = 0;
  std::string reason;
};
// No process of the round is left on the node.
struct NodeStopped {
  RoundNumber round = 0;
  std::vector<WorkerFailure> failures;
};
// The node was told by a signal to end.
struct NodeLeaves {
  int signal = 0;
};
using AgentMessage = std::variant<NodeJoins, StoreIsOpen, WorkerFailed, WorkersSucceeded,
                                  NodeCannotRun, NodeStopped, NodeLeaves>;

// Coordinator to agent.
struct PrepareRound {
  RoundNumber round = 0;
  int restart_count = 0;
  int max_restarts = 0;
  NodePlace place;
  std::string reason;  // why there is another round after the first one, as a clause
};
struct RunWorkers {
  RoundNumber round = 0;
  StoreEndpoint store;
};
struct StopWorkers {
  RoundNumber round = 0;
  RestartScope scope = RestartScope::kJob;
};
struct EndJob {
  Verdict verdict;
};
using CoordinatorMessage = std::variant<PrepareRound, RunWorkers, StopWorkers, EndJob>;

}  // namespace elastic::protocol
