#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/environment.h"
#include "src/net/loop.h"
#include "src/process/spawn.h"
#include "src/process/tree.h"
#include "src/status/snapshot.h"
#include "src/warm/import_server.h"
#include "src/warm/warm_rules.h"

namespace elastic::warm {

// Starts the node's workers warm where that can be (docs/warm-workers.md): keeps its import server, and says why where
// they start cold.
class WarmWorkers {
 public:
  struct Settings {
    WarmLaunch launch;
    std::string program;  // the file that every worker executes
    int workers = 1;      // of this node
  };
  // `tree` outlives it. `cgroup_procs`: of the workers' cgroup; -1: there is none.
  WarmWorkers(net::Loop& loop, Settings settings, process::WorkerTree& tree, int cgroup_procs);

  // So many workers wait, so that start_workers() is worth a try.
  bool may_start(int count);
  // Makes workers of those that wait. False: they are to be started fresh. Else `done` is called within about a second,
  // with their pids, or without any: then they are to be started fresh, and none of them runs. `commands`: what fresh
  // ones would be given, by local rank, with one and the same environment.
  bool start_workers(const std::vector<process::Command>& commands, std::function<void(std::vector<pid_t>)> done);
  // The round is stopped before that.
  void give_up_starting();

  // For the node's status.
  status::WarmWorkers status() const;
  // The processor time that the imports would have taken each of the workers that start_workers() has made.
  std::int64_t spared_cpu_ms() const { return spared_cpu_ms_; }

  // Workers of a round have been started; `are_warm`: by start_workers(). `one` of them, and its pid.
  void round_began(bool are_warm, int restarts_left, const process::Command& one, pid_t pid);
  // None of them is left. `has_failed`: one of them has failed by itself.
  void round_ended(bool has_failed);
  // For WorkerTree.
  void server_has_ended(ExitStatus status) { server_.has_ended(status); }
  // The agent is done.
  void end();

 private:
  std::string why_cold(const std::vector<process::Command>& commands);
  void look_at_server();
  void plan_look();
  void start_server();
  void warn_once(const std::string& why);

  void started(Result<std::vector<pid_t>> pids);

  Settings settings_;
  process::WorkerTree& tree_;
  int cgroup_procs_;
  WarmRules rules_;
  ImportServer server_;
  net::Timer timer_;
  std::function<void(std::vector<pid_t>)> done_;  // the call that start_workers() was given
  std::int64_t starting_since_ms_ = 0;
  std::int64_t spared_cpu_ms_ = 0;
  pid_t running_ = 0;                   // a worker of the present round
  Environment environment_;             // of all its workers
  std::vector<std::string> variables_;  // and those of the others that are the same for all ranks and rounds
  std::vector<std::string> found_;      // the variables that the server was started with
};

}  // namespace elastic::warm
