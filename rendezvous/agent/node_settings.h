#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "rendezvous/protocol/messages.h"

namespace elastic::agent {

// What one node's decisions depend on. Times are milliseconds.
struct NodeSettings {
  int local_world_size = 1;
  std::string role = "default";
  std::int64_t shutdown_timeout_ms = 30'000;  // from SIGTERM to SIGKILL
  // The same after a SIGTERM to elastic-run, whose sender (Slurm, Kubernetes) sends SIGKILL 30 s later.
  std::int64_t terminated_timeout_ms = 25'000;
  // From SIGKILL until the agent stops waiting for a worker that does not end.
  std::int64_t stuck_timeout_ms = 5'000;
  bool ignore_stuck_workers = false;   // the job goes on without such a worker; otherwise it fails
  bool leave_background = false;       // processes that successful workers have left running live on after the job
  std::set<int> forward_signals = {};  // handed to the workers, without any other effect
  // The sender that signals elastic-run (Slurm) signals its workers, too, once: a second SIGTERM does not mean "now".
  bool signals_are_shared = false;
  bool logs = false;              // there is a log directory
  bool has_segment_file = false;  // a file says whether the scheduler lets this node be in another round
  // What the node tells the coordinator of itself; see protocol::NodeJoins.
  protocol::AgentId agent = 1;
  std::string address = {};
  std::string addresses = {};
  std::optional<int> node_rank = {};
  bool hosts_coordinator = true;
  bool coordinator_may_move = false;  // another node may become the coordinator while this one still hosts it
  protocol::JobTerms terms = {};
  protocol::JobRules rules = {};
  health::CheckRules check = {};
  std::string group = {};
  std::shared_ptr<const protocol::TrainingPorts> training_ports = {};  // null: --training-port does not act
  // How long a node whose workers have succeeded waits for the other nodes' workers, unless those need this node.
  std::int64_t exit_barrier_ms = 300'000;
  // The other nodes are told what is known of a worker here that is why the job fails.
  bool shares_details = false;
  // The coordinator is told what identifies a round's first failure if it comes again (protocol::Crash).
  bool tells_crashes = false;
  // With --auto-tunning: the node looks for the reason of a round's first failure, whatever it is, before it has
  // stopped.
  bool finds_deaths = false;
  // A worker's error file stops the round before the worker has ended (EarlyStop).
  bool error_files_stop = false;
};

}  // namespace elastic::agent
