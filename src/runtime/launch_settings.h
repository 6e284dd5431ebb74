#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/agent/lifecycle.h"
#include "src/agent/worker_environment.h"
#include "src/output/lines/stream_plan.h"

namespace elastic::runtime {

// Who serves the worker store, and where.
struct StoreSettings {
  enum class Kind {
    kFreshLoopback,  // the launcher, on a free port of 127.0.0.1, another one each round
    kFixedPort,      // the launcher, on one port of all addresses, for the whole job
    kByWorker,       // rank 0's worker, on a free port that the launcher looks up
  };
  Kind kind = Kind::kFreshLoopback;
  std::string master_addr = "127.0.0.1";  // what workers are told
  std::uint16_t port = 0;                 // of kFixedPort
};

struct LogSettings {
  bool enabled = true;              // off for --log-dir=/dev/null
  std::optional<std::string> base;  // none: a directory made in `temporary`
  std::string temporary = "/tmp";
};

// Where the workers' output goes.
struct OutputSettings {
  std::vector<output::OutputFlags> ranks;  // by local rank: redirects, tee and shown
  std::string prefix_template;             // empty: torchrun's
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  std::uint64_t log_max_bytes = 0;  // of each log file, before it is rotated; 0: no bound
  bool status_line = false;  // our terminal can draw one, and it is wanted
  bool stderr_tail = true;  // keep the end of each worker's stderr for the failure report
};

// All that carrying out a launch needs to know.
struct LaunchSettings {
  agent::NodeSettings node;
  agent::WorkerTemplate worker;
  std::string program;  // the file that every worker executes, already looked up
  std::string title;    // what torchrun's failure summary calls the job: the script as typed
  std::string parent_error_file;  // where our own parent reads why we failed; empty if it does not
  StoreSettings store;
  LogSettings logs;
  OutputSettings output;
  int max_restarts = 0;
  std::vector<int> signals;  // that end the job in order, and those that are handed on to the workers
  bool use_cgroup = true;            // where one is delegated
  bool propagate_exit_code = false;  // end with the first failure's own code instead of 1
  std::string record_file;           // gets what the coordinator is told; empty: none
};

}  // namespace elastic::runtime
