#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/bindings.h"
#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/environment.h"
#include "src/base/exit_status.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/process/spawn.h"
#include "src/process/tree.h"
#include "src/status/snapshot.h"
#include "src/warm/warm_workers.h"

namespace elastic::run {

class CheckRunner;
class JobReporter;
class OutputHost;
class WorkerChannels;
struct LaunchSettings;

// Starts the workers of a round, fresh ones or those that wait warm, once the GPUs are free.
class WorkerStarter {
 public:
  struct Handlers {
    std::function<void(const protocol::PrepareRound&)> on_begin;  // just before the first one is started
    std::function<void(agent::Event)> on_event;                   // for the agent
  };
  // All but the handlers outlive it. `cgroup_procs`: as in process::SpawnContext.
  WorkerStarter(net::Loop& loop, const LaunchSettings& settings, process::WorkerTree& workers, int cgroup_procs,
                CheckRunner& check, OutputHost& output, WorkerChannels& channels, JobReporter& reporter,
                Handlers handlers);

  void perform(const agent::StartWorkers& order);
  // The round is stopped before its workers are there.
  void give_up();
  // The check's probe has ended.
  void probe_has_ended();
  // No worker is left, or none that the node waits for. `has_failed`: one of them by itself.
  void round_ended(bool has_failed) { warm_.round_ended(has_failed); }
  // There will be no other round.
  void finish() { warm_.end(); }
  // For WorkerTree::Handlers::on_aside_exit.
  void aside_has_ended(ExitStatus status) { warm_.server_has_ended(status); }
  status::WarmWorkers warm_status() const { return warm_.status(); }

 private:
  void begin_round(const agent::StartWorkers& order);
  void warn_of_ranks_that_are_not_there(const agent::StartWorkers& order);
  void start_workers(const agent::StartWorkers& order);
  void start_fresh(const agent::StartWorkers& order);
  void run_commands(const std::vector<pid_t>& warm);
  Result<process::Command> worker_command(const agent::StartWorkers& order, int local_rank);
  void could_not_start(int local_rank, const std::string& why) const;

  const LaunchSettings& settings_;
  process::WorkerTree& workers_;
  CheckRunner& check_;
  OutputHost& output_;
  WorkerChannels& channels_;
  JobReporter& reporter_;
  Handlers handlers_;
  Bindings bindings_;
  warm::WarmWorkers warm_;
  std::optional<Environment> inherited_environment_;  // what all workers get of the launcher's environment
  bool warned_of_wrap_ = false;
  net::Timer gpus_timer_;
  std::optional<agent::StartWorkers> awaits_gpus_;  // the order that waits for the end of the check's probe
  std::vector<process::Command> commands_;          // of workers that warm_ is asked for
  int restarts_left_ = 0;                           // after their round
};

}  // namespace elastic::run
