#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/events/log_event.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/waiting.h"

namespace elastic::events {

// Makes the log events of a launch on this node, in the order in which things happen: info is what users follow a job
// by, debug the rest. Warnings are the life cycle's own (Warn), and those about the connection to the coordinator.
class NodeEventLog {
 public:
  struct Settings {
    std::string run_id;
    std::string title;     // what users know the job by: the script as typed
    std::string endpoint;  // the coordinator's, for messages; empty for a job of one node
    int local_world_size = 1;
    int max_restarts = 0;
    bool logs = false;                 // there is a log directory
    std::int64_t loss_timeout_ms = 0;  // the one that the user has given on this node; 0: none
  };
  explicit NodeEventLog(Settings settings) : settings_(std::move(settings)) {}

  // The launch begins.
  LogEvent began() const;
  // The agent is about to get this event, at this time of a monotonic clock.
  LogEvents on_event(const agent::Event& event, std::int64_t now_ms);
  // This effect of the agent is about to be performed.
  LogEvents on_effect(const agent::Effect& effect, std::int64_t now_ms);
  // These local ranks handle the signal, and got it before the other processes of their groups; empty: none.
  LogEvents signalled_alone(int signal, const std::vector<int>& local_ranks) const;
  // What this node waits for now; empty: nothing. Says when a wait for other nodes begins, and when it ends.
  LogEvents waits_for(const std::optional<Waiting>& waiting, std::int64_t now_ms);
  // Whether there is a session with the coordinator, whether training depends on it, and why there is none. Says when
  // that changes. `loss_timeout_ms` is the coordinator's, if it is reached: it counts, not the one of this node.
  LogEvents coordinator_is(bool reached, bool matters, const std::string& problem, std::int64_t loss_timeout_ms);

 private:
  struct Worker {
    std::int64_t pid = 0;
    std::int64_t started_ms = 0;
    WorkerStart start = WorkerStart::kFresh;
    std::int64_t spared_cpu_ms = 0;
  };

  void on_from_coordinator(const agent::FromCoordinator& event, LogEvents& out);
  void on_store_opened(const agent::StoreOpened& event, LogEvents& out);
  void on_logs_opened(const agent::LogsOpened& event, LogEvents& out);
  void on_worker_started(const agent::WorkerStarted& event, LogEvents& out);
  void on_worker_not_started(const agent::WorkerNotStarted& event, LogEvents& out);
  void on_worker_exited(const agent::WorkerExited& event, LogEvents& out);
  void on_signal_received(const agent::SignalReceived& event, LogEvents& out);
  void on_node_checked(const agent::NodeChecked& event, LogEvents& out);
  void on_guardian_lost(const agent::GuardianLost& event, LogEvents& out);
  void on_progress_made(const agent::ProgressMade& event, LogEvents& out);
  void on_signal_workers(const agent::SignalWorkers& effect, LogEvents& out);
  void on_await_all_gone(const agent::AwaitAllGone& effect, LogEvents& out);
  void on_start_workers(const agent::StartWorkers& effect, LogEvents& out);
  void on_check_node(const agent::CheckNode& effect, LogEvents& out);
  void on_leave_background(const agent::LeaveBackground& effect, LogEvents& out);
  void on_close_store(const agent::CloseStore& effect, LogEvents& out);
  void on_warn(const agent::Warn& effect, LogEvents& out);
  void on_finish(const agent::Finish& effect, LogEvents& out);

  void prepared(const protocol::PrepareRound& round, LogEvents& out);
  void started(LogEvents& out);
  // What this signal does to the processes of the round, for people.
  std::string stopping_by(int signal) const;
  bool is_alone() const { return settings_.endpoint.empty(); }

  Settings settings_;
  std::int64_t now_ms_ = 0;
  protocol::PrepareRound round_;
  std::vector<Worker> workers_;  // those of the round that have started, by local rank
  std::string why_the_end_;      // why the job ends; empty before that. Processes may be stopped later than that
  std::string why_;              // why the present event stops the workers, if it does
  bool job_succeeded_ = false;
  int sent_signal_ = 0;        // the last one to the workers
  std::optional<int> spared_;  // the local rank that the round was stopped for, and that got no signal
  std::int64_t began_to_start_ms_ = 0;
  bool stopping_ = false;
  bool progress_told_ = false;  // of this round
  bool left_background_ = false;
  std::int64_t stopped_at_ms_ = 0;              // when the stop was ordered
  std::string standby_for_;                     // what the node on standby was last told to wait for
  std::optional<std::int64_t> waits_since_ms_;  // when the wait for other nodes began
  bool reached_ = false;                        // there is a session with the coordinator
  bool loss_told_ = false;
  std::int64_t loss_timeout_told_ms_ = 0;  // the coordinator's that was logged as different from this node's
};

}  // namespace elastic::events
