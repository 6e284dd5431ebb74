#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "rendezvous/protocol/messages.h"
#include "src/agent/lifecycle.h"
#include "src/net/loop.h"
#include "src/output/log_files.h"
#include "src/process/guardian.h"
#include "src/process/tree.h"
#include "src/runtime/launch_settings.h"
#include "src/runtime/store_host.h"

namespace elastic::runtime {

// Carries out what one node's life cycle decides: processes, store, timers, log directories.
class AgentRunner {
 public:
  struct Handlers {
    // What the agent tells the coordinator.
    std::function<void(protocol::AgentMessage)> to_coordinator;
    // The agent is done; nothing of the job is left on this node. Told once.
    std::function<void(protocol::Verdict)> finished;
  };

  // `logs` may be null: then nothing is kept. Settings and logs outlive the runner. `context.guardian`
  // is set by the runner.
  AgentRunner(net::Loop& loop, const LaunchSettings& settings, output::RunDirectory* logs,
              process::SpawnContext context, UniqueFd guardian, Handlers handlers);

  void begin() { happened(agent::Begin{}); }
  void from_coordinator(protocol::CoordinatorMessage message);

 private:
  void happened(agent::Event event);
  void carry_out(const agent::Effect& effect);

  void open_store();
  void name_survivors();
  void start_workers(const agent::StartWorkers& order);
  Result<pid_t> start_worker(const agent::StartWorkers& order, int local_rank);

  net::Loop& loop_;
  const LaunchSettings& settings_;
  output::RunDirectory* logs_;
  Handlers handlers_;
  agent::Lifecycle lifecycle_;
  std::optional<agent::Environment> inherited_environment_;  // what all workers get of the launcher's
  std::deque<agent::Event> events_;
  bool deciding_ = false;
  StoreHost store_;
  net::Timer timer_;
  process::GuardianLink guardian_;
  process::WorkerTree workers_;
};

}  // namespace elastic::runtime
