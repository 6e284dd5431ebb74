#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/run/output_settings.h"
#include "cli/run/worker_environment.h"
#include "cli/run/wrap.h"
#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/store/store_settings.h"
#include "rendezvous/transport/meeting_settings.h"

namespace elastic::run {

struct LogSettings {
  bool enabled = true;              // off for --log-dir=/dev/null
  std::optional<std::string> base;  // none: a directory made in `temporary`
  std::string temporary = "/tmp";
};

// Several elastic-runs that were started on this node for one of them to launch.
struct LocalTasksSettings {
  std::string name = {};  // the same for all, and on this host for no others
  int index = 0;          // 0 launches, the others wait for its end and end as it does
  int members = 1;
};

// All that carrying out a launch needs to know. A part of the launcher has settings of its own (part_settings.h).
struct LaunchSettings {
  agent::NodeSettings node;
  WorkerTemplate worker;
  std::vector<WrapRule> wrap;         // commands that stand before that of workers
  std::string program;                // the file that every worker executes, already looked up
  bool workers_end_together = false;  // it waits, when it is done, until all of the node are (process::EndGate)
  std::string title;                  // what torchrun's failure summary calls the job: the script as typed
  std::string parent_error_file;      // where our own parent reads why we failed; empty if it does not
  std::string termination_log;        // where a container's orchestrator reads it, if that file is there
  LocalTasksSettings local_tasks;
  transport::MeetingSettings meeting;
  store::StoreSettings store;
  LogSettings logs;
  OutputSettings output;
  int max_restarts = 0;
  std::vector<int> signals;     // that end the job in order, and those that are handed on to the workers
  bool use_cgroup = true;       // where one is delegated
  std::int64_t parting_ms = 0;  // how long a failed job's node stays when all is done, for the others to get as far
  bool propagate_exit_code = false;        // end with the first failure's own code instead of 1
  std::string health_hook;                 // the user's own check of this node's host; empty: none
  std::string check_probe;                 // the user's own program for the tests of pairs; empty: none
  int gpus = 0;                            // of this node that the check is to test
  std::string nccl_lib;                    // that the check uses; empty: the one that the workers would find
  std::string gpu_probe;                   // a program in the place of elastic-run's own for GPUs; empty: none
  std::string health_report;               // gets a page of what the check has found; empty: none
  std::optional<std::uint16_t> http_port;  // for status and metrics, 0: a free one; none: only the coordinator's port
  std::string record_file;                 // gets what the coordinator is told; empty: none
  std::string events_file;                 // gets every event; empty: none
  std::string on_event;                    // the user's command for events; empty: none
  std::set<std::string> on_event_kinds;    // those for which it is run
  bool torch_events = false;               // print torchelastic's events as torchrun does
  std::string rdzv_backend;                // what they call it: "c10d", "static"
  std::string entry_point;                 // what they call the program
};

}  // namespace elastic::run
