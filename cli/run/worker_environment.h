#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "src/base/environment.h"
#include "src/base/result.h"

// What a worker is given: its environment and arguments, as torchrun gives them.
namespace elastic::run {

// Where the user may have put the job's secret; workers do not get it.
inline constexpr const char* kSecretVariable = "ELASTIC_RUN_TOKEN";

// What all workers of this node have in common.
struct WorkerTemplate {
  std::vector<std::string> arguments;  // argv; ${local_rank} stands for the local rank
  Environment environment;             // the launcher's own, that each worker's is built upon
  std::string run_id;
  std::string role;
  int local_world_size = 1;
  bool virtual_local_rank = false;
  // The launcher serves the store; otherwise rank 0's worker does.
  bool use_agent_store = true;
  std::string signals_to_handle;
};

// One worker's place in a round.
struct WorkerPlace {
  int local_rank = 0;
  int restart_count = 0;
  int max_restarts = 0;
  protocol::NodePlace node;
  std::string master_addr;
  std::string master_port;
  std::string error_file;  // where @record writes; empty if nothing is to be kept
};

// The variables that a worker gets on top of the launcher's environment, in the order in which
// torchrun documents them. The names are the same at every place.
// With virtual local ranks, fails if the visible devices are fewer than the workers.
Result<std::vector<Variable>> worker_variables(const WorkerTemplate& worker, const WorkerPlace& place);

// An environment without those that bear the name of one of the variables.
Environment without_variables(const Environment& base, const std::vector<Variable>& variables);

// NAME=value for each.
Environment as_environment(const std::vector<Variable>& variables);

// argv with ${local_rank} and $local_rank replaced. Unlike Python's Template, which torchrun uses,
// "$$" stays as it is: a script's own dollars arrive unchanged.
std::vector<std::string> worker_arguments(const WorkerTemplate& worker, int local_rank);

}  // namespace elastic::run
