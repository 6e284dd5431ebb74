#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "src/base/environment.h"
#include "src/base/result.h"

// A worker's environment and arguments, as torchrun sets them.
namespace elastic::run {

// The variable that may have the job's secret; workers do not get it.
inline constexpr const char* kSecretVariable = "ELASTIC_RUN_TOKEN";

// The vendor whose devices a virtual local rank is about.
enum class Devices : unsigned char { kCuda, kAmd, kIntel, kAscend };

// The values that all workers of this node share.
struct WorkerTemplate {
  std::vector<std::string> arguments;  // argv; ${local_rank} is replaced by the local rank
  Environment environment;             // the launcher's own, to which variables are added
  std::string run_id;
  std::string role;
  int local_world_size = 1;
  bool virtual_local_rank = false;
  Devices devices = Devices::kCuda;  // with virtual local ranks
  std::uint16_t training_port =
      0;  // where HCCL's ports begin, unless the nodes agree on others; 0: workers are told none
  // Whether the launcher serves the store; otherwise the worker of rank 0 does.
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
  std::string error_file;               // where @record writes; empty: nothing is kept
  std::string fence;                    // of the round (rendezvous/protocol/fence.h)
  std::uint16_t training_port = 0;      // PrepareRound::training_port
  std::vector<Variable> channels = {};  // the paths at which the launcher listens to the worker
  std::vector<Variable> hang = {};      // by which it says more of a round that hangs
};

// The variables that a worker gets in addition to the launcher's environment, in the order in which
// torchrun documents them. Every worker has the same names.
// With virtual local ranks, fails if fewer devices are visible than there are workers.
Result<std::vector<Variable>> worker_variables(const WorkerTemplate& worker, const WorkerPlace& place);

// Returns `base` without entries that have the name of one of the variables.
Environment without_variables(const Environment& base, const std::vector<Variable>& variables);

// Returns a NAME=value string for each variable.
Environment as_environment(const std::vector<Variable>& variables);

// Returns argv with ${local_rank} and $local_rank replaced. Unlike in Python's Template, which torchrun uses,
// "$$" stays unchanged, so that a script gets its own dollar signs.
std::vector<std::string> worker_arguments(const WorkerTemplate& worker, int local_rank);

}  // namespace elastic::run
