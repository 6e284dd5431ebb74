#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/bindings.h"
#include "cli/run/check_runner.h"
#include "cli/run/error_file_watch.h"
#include "cli/run/file_timers.h"
#include "cli/run/guardian_orders.h"
#include "cli/run/hang_host.h"
#include "cli/run/job_coordinator.h"
#include "cli/run/job_report.h"
#include "cli/run/launch_settings.h"
#include "cli/run/node_stacks.h"
#include "cli/run/node_telemetry.h"
#include "cli/run/output_host.h"
#include "cli/run/progress_host.h"
#include "cli/run/segment_file.h"
#include "cli/run/tuning_host.h"
#include "cli/run/worker_signals.h"
#include "rendezvous/agent/agent.h"
#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/store/store_host.h"
#include "src/net/loop.h"
#include "src/process/tree.h"
#include "src/warm/warm_workers.h"

namespace elastic::run {

// Carries out what the agent of this node decides: processes, store, timers, log directories, and the way to the job's
// coordinator.
class AgentRunner {
 public:
  struct Handlers {
    // The coordinator is in this process from now on; called by the constructor for that of a job of one node.
    std::function<void(transport::CoordinatorServer&)> on_hosting;
    // This node's peer port is open, at which it can come to host the coordinator.
    std::function<void(transport::CoordinatorServer&)> on_peer_server = {};
    // The agent is done; nothing of the job is left on this node. Called once, with what is known of the first failure
    // if it was on another node (report::details_of).
    std::function<void(protocol::JobResult, std::string details)> finished;
  };

  // `logs` may be null: then there is no log directory. `directory`: of this launch (process::make_job_directory), or
  // empty. `settings`, and `files`, the thread for all access to the log directory, outlive the runner.
  // `context.guardian` is set by the runner.
  AgentRunner(net::Loop& loop, const LaunchSettings& settings, net::SideThread& files,
              std::shared_ptr<output::RunDirectory> logs, const std::string& directory, process::SpawnContext context,
              process::GuardianChannel guardian, Handlers handlers);

  void begin();
  JobCoordinator& coordinator() { return coordinator_; }
  // The outer process has died.
  bool guardian_is_lost() const { return guardian_.is_lost(); }
  // After the agent is done: `call` is called at a signal that ends the job, and with 0 when the outer process has
  // died.
  void on_signal(std::function<void(int signal)> call) { signals_.on_end(std::move(call)); }
  status::Node status() const;
  status::Whereabouts whereabouts() const;
  // How workers of this node have failed in its last round.
  const std::vector<protocol::WorkerFailure>& failures() const { return agent_.lifecycle().failures(); }
  const std::vector<health::Finding>& check_findings() const { return check_.findings(); }
  // Makes the failure report, once the agent has finished.
  JobReporter& reporter() { return reporter_; }
  // A thread waits for an output file of a worker, that of its loader's parameters, or the segment file.
  bool files_hang() { return progress_.hangs() || tuning_.hangs() || (segment_ && segment_->hangs()); }
  // Writes what is left of the workers' output to the console.
  void flush_output() { output_.flush(); }
  const NodeTelemetry& telemetry() const { return telemetry_; }
  // GuardianOrders::leave().
  void leave(int status) const { guardian_.leave(status); }

 private:
  void on_event(agent::AgentEvent event);
  void perform(const agent::AgentEffect& effect);
  void perform(const agent::Effect& effect);
  std::optional<Waiting> waiting() const;

  void open_store(const std::string& admits);
  void name_survivors();
  void find_background();
  std::string background_text(const std::vector<process::WorkerTree::Background>& left) const;
  // Starts the workers when the check's probe has given up its GPUs, at once if it has none.
  void start_on_free_gpus(const agent::StartWorkers& order);
  void begin_round(const agent::StartWorkers& order);
  void warn_of_ranks_that_are_not_there(const agent::StartWorkers& order);
  void start_workers(const agent::StartWorkers& order);
  void start_fresh(const agent::StartWorkers& order);
  void run_commands(const std::vector<pid_t>& warm);
  void give_up_starting();
  bool has_failed() const;
  void find_first_failure(protocol::RoundNumber round);
  void watch_error_files(protocol::RoundNumber round);
  HangHost::Handlers hang_handlers();
  // Where files about a hang of this round belong; empty: nowhere.
  std::string hang_directory() const;
  const std::vector<Variable>& hang_variables();
  Result<process::Command> worker_command(const agent::StartWorkers& order, int local_rank);

  net::Loop& loop_;
  const LaunchSettings& settings_;
  Handlers handlers_;
  agent::Agent agent_;
  net::Timer link_timer_;
  NodeTelemetry telemetry_;
  std::optional<Environment> inherited_environment_;     // what all workers get of the launcher's environment
  std::optional<std::vector<Variable>> hang_variables_;  // of this job's workers, once they are known
  std::deque<agent::AgentEvent> events_;
  bool deciding_ = false;
  bool warned_of_wrap_ = false;
  Bindings bindings_;
  store::StoreHost store_;
  CheckRunner check_;
  ProgressHost progress_;
  TuningHost tuning_;
  OutputHost output_;
  JobReporter reporter_;
  net::Timer timer_;
  net::Timer gpus_timer_;
  std::optional<agent::StartWorkers> awaits_gpus_;  // the order that waits for the end of the check's probe
  GuardianOrders guardian_;
  process::WorkerTree workers_;
  WorkerSignals signals_;
  warm::WarmWorkers warm_;
  NodeStacks stacks_;
  FileTimers file_timers_;
  HangHost hang_;
  std::optional<ErrorFileWatch> error_files_;  // where they stop rounds
  std::optional<SegmentFile> segment_;         // if there may be one
  std::vector<process::Command> commands_;     // of workers that warm_ is asked for
  int restarts_left_ = 0;                      // after their round
  JobCoordinator coordinator_;
};

}  // namespace elastic::run
