#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/parse.h"
#include "src/base/result.h"

// What the place in which elastic-run was started already knows of the job: the environment of a batch system or an
// orchestrator becomes defaults of flags. docs/environment.md has the rules for users.
namespace elastic::cli::detect {

// With ELASTIC_RUN_DETECT=off nothing is detected.
inline constexpr const char* kSwitchVariable = "ELASTIC_RUN_DETECT";

// A flag's default, as good as the flag's own where neither the command line nor its PET_ variable says otherwise.
struct Default {
  FlagId flag = FlagId::kNnodes;
  std::string value;
  std::string source;  // for people: "Slurm: SLURM_STEP_NUM_NODES=3"
};

// Several elastic-runs that were started on this node for one of them to launch.
struct LocalTasks {
  std::string name = {};    // the same for all of them, and for no others of this host; may stand in a socket's name
  int index = 0;            // 0 launches; the others wait for its end and take over its exit status
  int members = 1;          // this one included
  std::string source = {};  // "Slurm: SLURM_LOCALID=0, SLURM_STEP_TASKS_PER_NODE=4(x3)"
};

struct Detected {
  std::string system = {};  // "Slurm", "Kubernetes"; empty: none that is known here
  std::vector<Default> defaults = {};
  std::vector<std::string> notes = {};     // whole lines, to be told at every log level
  std::vector<std::string> warnings = {};  // whole lines
  // Of the endpoint among the defaults:
  std::vector<std::uint16_t> ports = {};  // all at which the coordinator may be, in the order in which they are tried;
                                          // the first one is the endpoint's
  std::vector<std::string> more_hosts = {};  // others at which a node of the running job may be found
  std::optional<bool> is_host = {};          // whether this node hosts the coordinator
  std::string is_host_source = {};           // why, as a clause
  std::vector<std::string> hosts = {};       // of the step's nodes, in order; empty: they are not listed
  std::optional<std::int64_t> node = {};     // which of the nodes this is, from 0 on
  std::string step = {};                     // of Slurm: "slurm-1234.0"; empty: none
  LocalTasks local_tasks = {};
  bool has_all_nodes = false;     // all that can ever come have been started: a lost one is not replaced
  bool signals_the_node = false;  // who ends or warns the job may signal every process of it, workers included
};

// Whether the user has chosen the rendezvous, by flag or PET_ variable: --standalone, an endpoint, a master address or
// port, the static backend, --nnodes=1, or another place to meet (store_type). Then none of the defaults is taken, so
// that parts of two rendezvous do not mix: `srun torchrun --nnodes=$SLURM_NNODES --rdzv-endpoint=...` works as before.
bool has_own_rendezvous(const ParsedFlags& flags);

// The text of a file of this host; empty where it cannot be read.
using FileLookup = std::function<std::string(const std::string& path)>;

// Looks for each known system; the first one that is there gives its defaults to the flags that nobody has given. Each
// given flag wins by itself: --nnodes=2:3 changes the number of nodes only. Fails where the user's own endpoint is each
// node itself, though this node is not the only one. In a worker of another launcher
// (TORCHELASTIC_RUN_ID) nothing is taken, and a note says so. Fails where the system is there, but not in a form in
// which a job can be launched, unless the user has chosen the rendezvous.
Result<Detected> detect(ParsedFlags& flags, const EnvironmentLookup& environment, const FileLookup& file);

}  // namespace elastic::cli::detect
