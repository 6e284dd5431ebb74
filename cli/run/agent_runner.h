#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/agent.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/waiting.h"
#include "src/net/loop.h"
#include "src/process/guardian.h"
#include "src/process/tree.h"
#include "src/status/lead.h"
#include "src/status/snapshot.h"

namespace elastic::health {
struct Finding;
}
namespace elastic::net {
class SideThread;
}
namespace elastic::output {
class RunDirectory;
}
namespace elastic::store {
class StoreHost;
}
namespace elastic::transport {
class CoordinatorServer;
}

namespace elastic::run {

class CheckRunner;
class GuardianOrders;
class JobCoordinator;
class JobReporter;
class NodeTelemetry;
class OutputHost;
class SegmentFile;
class WorkerChannels;
class WorkerSignals;
class WorkerStarter;
struct LaunchSettings;

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
  ~AgentRunner();

  void begin();
  JobCoordinator& coordinator() { return *coordinator_; }
  // The outer process has died.
  bool guardian_is_lost() const;
  // After the agent is done: `call` is called at a signal that ends the job, and with 0 when the outer process has
  // died.
  void on_signal(std::function<void(int signal)> call);
  status::Node status() const;
  status::Whereabouts whereabouts() const;
  // How workers of this node have failed in its last round.
  const std::vector<protocol::WorkerFailure>& failures() const { return agent_.lifecycle().failures(); }
  const std::vector<health::Finding>& check_findings() const;
  // Makes the failure report, once the agent has finished.
  JobReporter& reporter() { return *reporter_; }
  // A thread waits for an output file of a worker, that of its loader's parameters, or the segment file.
  bool files_hang();
  // Writes what is left of the workers' output to the console.
  void flush_output();
  const NodeTelemetry& telemetry() const { return *telemetry_; }
  // GuardianOrders::leave().
  void leave(int status) const;

 private:
  void on_event(agent::AgentEvent event);
  void perform(const agent::AgentEffect& effect);
  void perform(const agent::Effect& effect);
  std::optional<Waiting> waiting() const;

  void open_store(const std::string& admits);
  void name_survivors();
  void find_background();
  std::string background_text(const std::vector<process::WorkerTree::Background>& left) const;
  void begin_round(const protocol::PrepareRound& round);
  bool has_failed() const;
  void find_first_failure(protocol::RoundNumber round);

  net::Loop& loop_;
  const LaunchSettings& settings_;
  Handlers handlers_;
  agent::Agent agent_;
  std::unique_ptr<NodeTelemetry> telemetry_;
  std::deque<agent::AgentEvent> events_;
  bool deciding_ = false;
  std::unique_ptr<store::StoreHost> store_;
  std::unique_ptr<CheckRunner> check_;
  std::unique_ptr<OutputHost> output_;
  std::unique_ptr<JobReporter> reporter_;
  net::Timer timer_;
  std::unique_ptr<GuardianOrders> guardian_;
  process::WorkerTree workers_;
  std::unique_ptr<WorkerSignals> signals_;
  std::unique_ptr<WorkerChannels> channels_;  // output_ passes on to it what it reads, and nothing after the loop's end
  std::unique_ptr<WorkerStarter> starter_;
  std::unique_ptr<SegmentFile> segment_;  // null where there is none
  std::unique_ptr<JobCoordinator> coordinator_;
};

}  // namespace elastic::run
