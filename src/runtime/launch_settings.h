#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/agent/lifecycle.h"
#include "src/agent/worker_environment.h"
#include "src/base/text.h"
#include "src/output/lines/stream_plan.h"

namespace elastic::runtime {

// Who serves the worker store, and where.
struct StoreSettings {
  enum class Kind {
    kFreshLoopback,  // the launcher, on a free port of 127.0.0.1, another one each round
    kFixedPort,      // the launcher, on one port of all addresses, for the whole job
    kByWorker,       // rank 0's worker, on a free port that the launcher looks up
    kFreshPort,      // the launcher of node rank 0, on a free port of all addresses, another one each round
    kAtEndpoint,     // the same, at the port at which the coordinator listens
  };
  Kind kind = Kind::kFreshLoopback;
  // What workers are told; empty: the address by which the other nodes reach this one.
  std::string master_addr = "127.0.0.1";
  std::uint16_t port = 0;  // of kFixedPort
  // Of kByWorker and kFreshPort without a port: each round begins with the one behind that of the round before, and
  // takes the first that is free, else any.
  std::vector<std::uint16_t> port_choices = {};
  bool of_loopback = true;  // kByWorker: the port need be free there only
  bool admits_all = false;  // kFreshPort, kAtEndpoint: whoever connects, and not only the round's nodes
};

// How the nodes of a job find each other.
struct MeetingSettings {
  enum class Place {
    kEndpoint,  // who binds the endpoint hosts the coordinator
    kFile,      // a file says who hosts it
    kTcpStore,  // the same by a key of a PyTorch TCPStore, which somebody else runs at the endpoint
  };
  bool alone = true;               // one node: its coordinator is in its own process, and nothing of this is used
  Place place = Place::kEndpoint;
  std::string path = {};           // of kFile
  std::uint16_t coordinator_port = 0;  // of kFile and kTcpStore: where it listens; 0: a free one
  std::string host = {};           // of the endpoint: a name or a numeric address; not of kFile
  std::uint16_t port = 0;          // of the endpoint
  bool is_default = false;         // the endpoint's host is one that nobody has named: every host itself
  std::vector<std::uint16_t> more_ports = {};  // of the endpoint: tried after `port`, in this order
  std::optional<bool> is_host = {};  // whether this node hosts the coordinator, if anybody has said so
  std::string is_host_source = {};   // who, as a clause; empty: is_host= in --rdzv-conf
  bool serves_own_job_only = false;  // other jobs are turned away; else a coordinator of ours serves them, too
  bool store_at_endpoint = false;  // static: one port for the coordinator and the workers' store
  std::string secret = {};
  std::int64_t loss_timeout_ms = 5'000;
  std::int64_t rejoin_ms = 30'000;
};

// "host0:29400", "[::1]:29400"; "TCPStore host0:29400"; "file /shared/meeting".
inline std::string endpoint_text(const MeetingSettings& meeting) {
  if (meeting.place == MeetingSettings::Place::kFile) return format("file {}", printable(meeting.path));
  const bool is_v6 = meeting.host.contains(':');
  const std::string store = meeting.place == MeetingSettings::Place::kTcpStore ? "TCPStore " : "";
  return store + (is_v6 ? format("[{}]:{}", meeting.host, meeting.port)
                        : format("{}:{}", printable(meeting.host), meeting.port));
}

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

// Several elastic-runs that were started on this node for one of them to launch.
struct CompanySettings {
  std::string name = {};  // the same for all, and on this host for no others
  int index = 0;          // 0 launches, the others wait for its end and end as it does
  int members = 1;
};

// All that carrying out a launch needs to know.
struct LaunchSettings {
  agent::NodeSettings node;
  agent::WorkerTemplate worker;
  std::string program;  // the file that every worker executes, already looked up
  bool workers_end_together = false;  // it waits, when it is done, until all of the node are (process::EndGate)
  std::string title;    // what torchrun's failure summary calls the job: the script as typed
  std::string parent_error_file;  // where our own parent reads why we failed; empty if it does not
  std::string termination_log;    // where a container's orchestrator reads it, if that file is there
  CompanySettings company;
  MeetingSettings meeting;
  StoreSettings store;
  LogSettings logs;
  OutputSettings output;
  int max_restarts = 0;
  std::vector<int> signals;  // that end the job in order, and those that are handed on to the workers
  bool use_cgroup = true;            // where one is delegated
  std::int64_t parting_ms = 0;       // how long a failed job's node stays when all is done, for the others to get as far
  bool propagate_exit_code = false;  // end with the first failure's own code instead of 1
  std::string health_hook;           // the user's own check of this node's host; empty: none
  std::string check_probe;           // the user's own program for the tests of pairs; empty: none
  int gpus = 0;                      // of this node that the check is to test
  std::string nccl_lib;              // that the check uses; empty: the one that the workers would find
  std::string gpu_probe;             // a program in the place of elastic-run's own for GPUs; empty: none
  std::string health_report;         // gets a page of what the check has found; empty: none
  std::optional<std::uint16_t> http_port;  // for status and metrics, 0: a free one; none: only the coordinator's port
  std::string record_file;           // gets what the coordinator is told; empty: none
  std::string events_file;           // gets every event; empty: none
  bool torch_events = false;         // print torchelastic's events as torchrun does
  std::string rdzv_backend;          // what they call it: "c10d", "static"
  std::string entry_point;           // what they call the program
};

}  // namespace elastic::runtime
