#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/run/check_runner.h"
#include "cli/run/event_log.h"
#include "cli/run/job_report.h"
#include "cli/run/launch_settings.h"
#include "cli/run/output_host.h"
#include "rendezvous/agent/agent.h"
#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/agent/narrator.h"
#include "rendezvous/agent/shared_signals.h"
#include "rendezvous/agent/torch_events.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/store/store_host.h"
#include "rendezvous/transport/coordinator_connection.h"
#include "src/net/loop.h"
#include "src/process/guardian.h"
#include "src/process/signal_source.h"
#include "src/process/tree.h"

namespace elastic::run {

// Carries out what one node decides: processes, store, timers, log directories; of a job of many nodes also its
// connection to the coordinator, and the coordinator itself where it is to be hosted here.
class AgentRunner {
 public:
  struct Handlers {
    // What the agent of a job of one node tells its coordinator.
    std::function<void(protocol::AgentMessage)> to_coordinator;
    // The coordinator of a job of many listens here from now on.
    std::function<void(transport::CoordinatorServer&)> on_hosting = {};
    // The agent is done; nothing of the job is left on this node. Told once, with what is known of the first failure if
    // it was on another node (report::details_of).
    std::function<void(protocol::Verdict, std::string details)> finished;
  };

  // `logs` may be null: then nothing is kept. Settings and `files`, the thread for all that touches the logs,
  // outlive the runner. `context.guardian` is set by the runner.
  AgentRunner(net::Loop& loop, const LaunchSettings& settings, net::SideThread& files,
              std::shared_ptr<output::RunDirectory> logs, process::SpawnContext context,
              process::GuardianChannel guardian, Handlers handlers);

  void begin();
  // For a job of one node.
  void from_coordinator(protocol::CoordinatorMessage message);
  // The coordinator in this process; null if a job of many nodes has it elsewhere.
  transport::CoordinatorServer* server() { return connection_ ? connection_->server() : nullptr; }
  // The outer process has died.
  bool guardian_is_lost() const { return guardian_is_lost_; }
  // Told of a signal to end, or of the outer process's death, instead of the agent, which is done.
  void on_signal(std::function<void()> told) { on_signal_ = std::move(told); }
  // Takes back what leads others to that coordinator; `done` is called when it has been tried.
  void withdraw(std::function<void()> done) { connection_->withdraw(std::move(done)); }
  // The place where the nodes meet keeps this process from ending.
  bool meeting_hangs() const { return connection_ && connection_->hangs(); }
  // What this node tells of itself.
  status::Node status() const;
  const std::vector<health::Finding>& check_findings() const { return check_.findings(); }
  // Makes the report, once the agent has finished.
  JobReporter& reporter() { return reporter_; }
  // Shows what workers have written and is not shown yet.
  void flush_output() { output_.flush(); }
  // Prints torchelastic's last events, where they are wanted. `error_files`: what stood in those of this node's
  // workers, by local rank.
  void tell_torch(const protocol::Verdict& verdict, const std::vector<std::string>& error_files) const;
  // Tells the guardian to end with this status without waiting for long for the launcher, which hangs.
  void leave(int status) { guardian_.send({process::GuardianMessage::Kind::kLeaving, status}); }

 private:
  void happened(agent::AgentEvent event);
  void decide(const agent::AgentEvent& event, std::int64_t now_ms);
  void carry_out(const agent::Effect& effect);
  void carry_out(const agent::AgentEffect& effect);
  std::int64_t now_ms() const;
  const agent::Lifecycle& lifecycle() const;
  std::optional<Waiting> waiting() const;
  void hear(const agent::Event& event);
  void hear(const agent::Effect& effect);
  void tell_of_link();
  void count(const agent::AgentEvent& event);
  void renew_guardians_lease();
  void renew_farewell();

  void open_store(const std::string& admits);
  // Of those that the user has named: one that ends the job.
  bool ends_job(int signal) const;
  // A signal that counts; `worker`: who has sent it, 0 if it was none of ours.
  void signalled(int signal, pid_t worker = 0);
  void launcher_got(const process::ReceivedSignal& signal);
  void signal_workers(const agent::SignalWorkers& order);
  void plan_shared_signals();
  void name_survivors();
  void find_background();
  std::string background_text(const std::vector<process::WorkerTree::Background>& left) const;
  // Starts them when the GPUs that the check has tested are free again, or at once.
  void start_on_free_gpus(const agent::StartWorkers& order);
  void begin_round(const agent::StartWorkers& order);
  void warn_of_ranks_that_are_not_there(const agent::StartWorkers& order);
  void start_workers(const agent::StartWorkers& order);
  Result<pid_t> start_worker(const agent::StartWorkers& order, int local_rank);

  net::Loop& loop_;
  const LaunchSettings& settings_;
  Handlers handlers_;
  std::function<void()> on_signal_;
  bool guardian_is_lost_ = false;
  std::variant<agent::Lifecycle, agent::Agent> agent_;            // of a job of one node, of many
  std::unique_ptr<transport::CoordinatorConnection> connection_;  // of many
  net::Timer link_timer_;
  std::optional<std::int64_t> guardians_lease_ms_;
  // Of the round whose workers run, and to whom it is to be said that they are gone.
  struct Farewell {
    protocol::RoundNumber round = 0;
    std::string address = {};  // numeric; empty: to nobody
    std::uint16_t port = 0;
    protocol::Incarnation incarnation = 0;
    protocol::Term term = 0;
    bool operator==(const Farewell&) const = default;
  };
  std::optional<Farewell> farewell_;
  std::string link_problem_;  // the last
  agent::Narrator narrator_;
  std::optional<agent::TorchEvents> torch_events_;    // where they are wanted
  std::optional<Environment> inherited_environment_;  // what all workers get of the launcher's
  std::deque<agent::AgentEvent> events_;
  bool deciding_ = false;
  bool warned_of_wrap_ = false;
  std::int64_t workers_started_ = 0;
  std::int64_t workers_failed_ = 0;  // by themselves
  store::StoreHost store_;
  CheckRunner check_;
  OutputHost output_;
  JobReporter reporter_;
  net::Timer timer_;
  agent::SharedSignals shared_signals_;
  net::Timer signals_timer_;
  net::Timer gpus_timer_;
  std::optional<agent::StartWorkers> awaits_gpus_;      // whose workers start when the check's probe has ended
  std::unique_ptr<process::SignalSource> own_signals_;  // those that the launcher itself gets
  process::GuardianLink guardian_;
  process::WorkerTree workers_;
};

}  // namespace elastic::run
