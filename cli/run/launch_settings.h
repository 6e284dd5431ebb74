#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/run/output_settings.h"
#include "cli/run/progress_settings.h"
#include "cli/run/worker_environment.h"
#include "cli/run/wrap.h"
#include "health/probe/check_settings.h"
#include "rendezvous/agent/node_settings.h"
#include "rendezvous/store/store_settings.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/numa/binding.h"
#include "src/warm/warm_rules.h"

namespace elastic::run {

struct LogSettings {
  bool enabled = true;              // off for --log-dir=/dev/null
  std::optional<std::string> base;  // not set: a directory made in `temporary`
  std::string temporary = "/tmp";
};

// This elastic-run's place among several that a batch system has started on this node; only task 0 launches.
struct LocalTasksSettings {
  std::string name = {};  // the same for all of them, and for no others on this host
  int index = 0;          // task 0 launches; the others wait for it and exit with its status
  int members = 1;
};

// torchelastic's file timers (docs/hangs.md).
struct FileTimerSettings {
  bool are_served = false;  // TORCHELASTIC_ENABLE_FILE_TIMER=1
  std::string path = {};    // of the FIFO; empty: in the directory of the launch
};

// --auto-tunning (docs/auto-tunning.md).
struct TuningSettings {
  bool gives_file = false;  // workers get DLRover's file, and what is in it changes
  int cpus = 1;             // that a rank may use
};

// All values that a launch needs. Each part of the launcher gets settings of its own, made of these (part_settings.h).
struct LaunchSettings {
  agent::NodeSettings node;
  WorkerTemplate worker;
  warm::WarmLaunch warm;
  std::vector<WrapRule> wrap;               // the commands of --wrap
  std::string program;                      // the file that every worker executes, as found on PATH
  std::vector<numa::Placement> placements;  // the CPUs and the memory of each local rank; empty: nothing is bound
  bool workers_end_together = false;  // workers that are done wait for the others of the node (process::WorkerBarrier)
  std::string title;                  // what torchrun's failure summary calls the job: the script as typed
  std::string parent_error_file;      // our own TORCHELASTIC_ERROR_FILE; empty: our parent has set none
  std::string termination_log;        // a container's termination log, which is written if it exists
  LocalTasksSettings local_tasks;
  transport::RendezvousSettings rendezvous;
  store::StoreSettings store;
  LogSettings logs;
  OutputSettings output;
  ProgressSettings progress;
  FileTimerSettings file_timers;
  TuningSettings tuning;
  int max_restarts = 0;
  std::vector<int> signals;     // the signals that stop the job, and those that are passed on to the workers
  bool use_cgroup = true;       // use a cgroup for the workers, where one is delegated
  std::int64_t parting_ms = 0;  // how long a node stays when the job has failed, so that other nodes can finish, too
  bool propagate_exit_code = false;  // exit with the first failure's own code instead of 1
  health::CheckSettings check;       // this node's part of the check before training
  std::string segment_file;          // by which the scheduler drains this node; empty: none
  std::optional<std::uint16_t>
      http_port;                         // for status and metrics; 0: a free one; not set: only the coordinator's port
  std::string record_file;               // the file for the coordinator's recording; empty: none
  std::string events_file;               // the file for all events; empty: none
  std::string on_event;                  // the command of --on-event; empty: none
  std::set<std::string> on_event_kinds;  // the events for which it is run
  bool torch_events = false;             // print torchelastic's events as torchrun does
  std::string rdzv_backend;              // the rendezvous backend in those events: "c10d", "static"
  std::string entry_point;               // the program's name in those events
};

}  // namespace elastic::run
