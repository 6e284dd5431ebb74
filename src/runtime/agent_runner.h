#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "rendezvous/protocol/messages.h"
#include "src/agent/lifecycle.h"
#include "src/net/loop.h"
#include "src/process/guardian.h"
#include "src/process/tree.h"
#include "src/runtime/event_log.h"
#include "src/runtime/launch_settings.h"
#include "src/runtime/output_host.h"
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

  // `logs` may be null: then nothing is kept. Settings and `files`, the thread for all that touches the logs,
  // outlive the runner. `context.guardian` is set by the runner.
  AgentRunner(net::Loop& loop, const LaunchSettings& settings, net::SideThread& files,
              std::shared_ptr<output::RunDirectory> logs, process::SpawnContext context,
              UniqueFd guardian, Handlers handlers);

  void begin();
  void from_coordinator(protocol::CoordinatorMessage message);
  // Where the last round's files are.
  const output::Attempt& attempt() const { return output_.attempt(); }
  // What a report is made of, once the agent has finished.
  JobReporter& reporter() { return reporter_; }
  std::vector<StderrOfWorker> take_stderrs() { return output_.take_stderrs(); }
  // Shows what workers have written and is not shown yet.
  void flush_output() { output_.flush(); }
  // Tells the guardian to end with this status without waiting for long for the launcher, which hangs.
  void leave(int status) { guardian_.send({process::GuardianMessage::Kind::kLeaving, status}); }

 private:
  void happened(agent::Event event);
  void carry_out(const agent::Effect& effect);

  void open_store();
  void name_survivors();
  void start_workers(const agent::StartWorkers& order);
  Result<pid_t> start_worker(const agent::StartWorkers& order, int local_rank);

  net::Loop& loop_;
  const LaunchSettings& settings_;
  Handlers handlers_;
  agent::Lifecycle lifecycle_;
  EventLog log_;
  std::optional<agent::Environment> inherited_environment_;  // what all workers get of the launcher's
  std::deque<agent::Event> events_;
  bool deciding_ = false;
  StoreHost store_;
  OutputHost output_;
  JobReporter reporter_;
  net::Timer timer_;
  process::GuardianLink guardian_;
  process::WorkerTree workers_;
};

}  // namespace elastic::runtime
