#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/agent/early_stop.h"
#include "rendezvous/agent/failure_details.h"
#include "rendezvous/agent/hang_aids.h"
#include "rendezvous/agent/kill_ladder.h"
#include "rendezvous/agent/leave_signals.h"
#include "rendezvous/agent/lifecycle_events.h"
#include "rendezvous/agent/node_round.h"
#include "rendezvous/agent/node_settings.h"
#include "rendezvous/agent/node_timer.h"
#include "rendezvous/agent/node_waits.h"
#include "rendezvous/agent/preparation.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/job_states.h"
#include "src/base/waiting.h"
#include "src/status/snapshot.h"

namespace elastic::agent {

// One node's life: joins, runs the workers of a round, stops them, waits for the next, ends. lifecycle_table.h has its
// states, and what it does on each event in each of them.
//
// Stopping is SIGTERM to every process group, then SIGKILL when the shutdown timeout is over; it ends when no process
// that a worker started is left. Processes that SIGKILL does not end are named 1 s later, and the node goes on without
// them when the stuck timeout is over.
class Lifecycle {
 public:
  explicit Lifecycle(NodeSettings settings);

  // `now_ms` is a monotonic clock's milliseconds.
  Effects on_event(const Event& event, std::int64_t now_ms);

  // The first message of a session with the coordinator. Its `facts` lack term and incarnation, which the link knows.
  protocol::NodeJoins joins() const;
  // No process of a round is left on this node, so that it can be in another round.
  bool is_idle() const { return state_ == State::kIdle; }
  // Workers may run, and the coordinator could give their ranks to other nodes.
  bool needs_lease() const;
  // The workers of the last round run, as far as is known.
  bool runs_workers() const { return state_ == State::kRunning; }
  bool has_job_result() const { return job_result_.has_value(); }
  // Null before there is one.
  const protocol::JobResult* job_result() const { return job_result_ ? &*job_result_ : nullptr; }
  // No coordinator needs this node's job result any more, or has anything to tell the node.
  bool is_dismissed() const { return dismissed_; }
  // What the node waits for, for the user; empty while workers run.
  std::optional<Waiting> waiting() const;
  // The same for a node that is idle and has a session with the coordinator.
  std::optional<Waiting> waiting_for_round() const;
  // The node's status, without what only its owner knows.
  status::Node status() const;
  // The order that prepared the last round.
  const protocol::PrepareRound& order() const { return round_.order(); }
  // The rank of this node's local rank 0 in the last round.
  int base_rank() const { return round_.place().base_rank; }
  // The failures of the last round on this node, in the order in which its workers ended.
  const std::vector<protocol::WorkerFailure>& failures() const { return round_.failures(); }
  void set_hosts_coordinator(bool hosts) { settings_.hosts_coordinator = hosts; }

 private:
  friend struct LifecycleTable;
  friend struct LifecycleBreaker;  // a test's

  enum class State { kIdle, kPreparing, kRunning, kSucceeded, kStopping, kEnding, kEnded };
  template <class Event>
  void run_cell_of(const Event& event, Effects& out);

  // --- The cells of the table. ---
  void prepare_round(const protocol::PrepareRound& message, Effects& out);
  void refuse_round(const protocol::PrepareRound& message, Effects& out);
  void run_check(const protocol::RunCheck& message, Effects& out);
  void run_workers(const protocol::RunWorkers& message, Effects& out);
  void note_order_to_stop(const protocol::StopWorkers& message, Effects& out);
  void stop_on_order(const protocol::StopWorkers& message, Effects& out);
  void stop_running_on_order(const protocol::StopWorkers& message, Effects& out);
  void stop_succeeded_on_order(const protocol::StopWorkers& message, Effects& out);
  void hurry_on_order(const protocol::StopWorkers& message, Effects& out);
  void end_idle(const protocol::EndJob& message, Effects& out);
  void end_round(const protocol::EndJob& message, Effects& out);
  void end_succeeded(const protocol::EndJob& message, Effects& out);
  void end_stopping(const protocol::EndJob& message, Effects& out);
  void hear_result_again(const protocol::EndJob& message, Effects& out);
  void be_dismissed(const protocol::Dismiss& message, Effects& out);
  void be_rejected_idle(const protocol::Rejected& message, Effects& out);
  void be_rejected_in_round(const protocol::Rejected& message, Effects& out);
  void be_rejected_ending(const protocol::Rejected& message, Effects& out);
  void leave_on_order(const protocol::LeaveJob& message, Effects& out);
  void note_awaited(const protocol::Awaiting& message, Effects& out);
  void keep_state(const protocol::KeepState& message, Effects&) { round_.keep(message); }
  void collect_stacks(const protocol::StacksWanted& message, Effects& out);
  void collect_evidence(const protocol::CollectEvidence& message, Effects& out) { hang_.collect(message, out); }
  void tell_hang(const protocol::HangTold& message, Effects& out) { hang_.tell_hang(message, out); }
  void tell_hang_over(const protocol::HangOver& message, Effects& out) { hang_.tell_over(message, out); }
  void hear_loader(const protocol::LoaderTold& message, Effects& out);
  void detach(const Detached& event, Effects& out);
  void detach_idle(const Detached& event, Effects& out);
  void attach(const Attached& event, Effects& out);
  void attach_idle(const Attached& event, Effects& out);
  void attach_succeeded(const Attached& event, Effects& out);
  void end_with_lease(const LeaseOver&, Effects& out);
  void give_up(const GivenUp& event, Effects& out);
  void give_up_round(const GivenUp& event, Effects& out);
  void store_opened(const StoreOpened& event, Effects& out);
  void store_opened_late(const StoreOpened&, Effects&) { preparation_.is_answered_about_this_store(); }
  void store_failed(const StoreFailed& event, Effects& out);
  void store_failed_late(const StoreFailed&, Effects&) { preparation_.is_answered_about_this_store(); }
  void logs_opened(const LogsOpened& event, Effects& out);
  void logs_failed(const LogsFailed& event, Effects& out);
  void node_checked(const NodeChecked& event, Effects& out);
  void worker_started(const WorkerStarted& event, Effects&) { round_.started(event); }
  void worker_not_started(const WorkerNotStarted& event, Effects& out);
  void worker_exited_running(const WorkerExited& event, Effects& out);
  void worker_exited(const WorkerExited& event, Effects& out);
  void error_file_written(const ErrorFileWritten& event, Effects& out);
  void progress_made(const ProgressMade& event, Effects& out);
  void signs_seen(const SignsSeen& event, Effects& out) { hang_.see_signs(event, now_ms_, out); }
  void evidence_read(const EvidenceRead& event, Effects& out) { hang_.send_evidence(event, out); }
  void stacks_collected(const StacksCollected& event, Effects& out);
  void loader_said(const LoaderSaid& event, Effects& out);
  void signal_received(const SignalReceived& event, Effects& out);
  void segment_seen_idle(const SegmentSeen& event, Effects& out);
  void segment_seen_preparing(const SegmentSeen& event, Effects& out);
  void guardian_lost(const GuardianLost& event, Effects& out);
  void dumps_awaited(const DumpsAwaited& event, Effects& out);
  void survivors_named(const SurvivorsNamed& event, Effects& out) { kill_ladder_.named(event.text, out); }
  void all_gone_stopping(const AllGone& event, Effects& out);
  void all_gone_ending(const AllGone& event, Effects& out);
  void crash_found(const CrashFound& event, Effects& out);
  void background_found(const BackgroundFound& event, Effects& out);
  void details_gathered(const DetailsGathered& event, Effects& out) { details_.gathered(event.text, out); }
  void timer_fired_idle(const TimerFired&, Effects& out);
  void timer_fired_preparing(const TimerFired&, Effects& out);
  void timer_fired_running(const TimerFired&, Effects& out) { out.push_back(PrepareLogs{}); }
  void timer_fired_succeeded(const TimerFired&, Effects& out);
  void timer_fired_stopping(const TimerFired&, Effects& out);
  void timer_fired_ending(const TimerFired&, Effects& out);

  // Starts the workers if the coordinator has ordered that and their log files are open.
  void start_if_ready(Effects& out);
  // Begins to stop the round with this signal.
  void stop(int signal, SignalWorkers::Cause cause, Effects& out);
  // The same for a round that hangs.
  void stop_hang(const protocol::StopWorkers& message, Effects& out);
  // Signals all processes of the round and waits for their end.
  void kill_ladder(int signal, SignalWorkers::Cause cause, Effects& out);
  // Kills the processes of the round at once: other nodes may have been given their ranks.
  void kill_round(Effects& out);
  // The worker whose error file has stopped the round is signalled like the others.
  void stop_spared(int signal, SignalWorkers::Cause cause, Effects& out);
  // NodeStopped::false_alarm, when no process of the round is left.
  std::optional<int> rank_of_false_alarm() const;
  void leave_if_drained(const SegmentSeen& event, Effects& out);
  // This node was told to end: tells the coordinator, and stops the round if there is one.
  void leave(SignalWorkers::Cause cause, Effects& out);
  // Processes have survived SIGKILL, and are given up.
  void tell_left_behind(Effects& out);
  // No process of the round is left, or none that the node waits for.
  void gone(Effects& out);
  // A worker of the round has ended. `stops`: the round does not run any more, so that a failure is a consequence.
  void note_exit(const WorkerExited& event, bool stops, Effects& out);
  // The round was stopped because a worker failed here in a way that may come again in the next round.
  bool may_have_crashed() const;
  // The first job result has come.
  void hear_result(const protocol::JobResult& job_result, Effects& out);
  // The job is over for this node without a message from the coordinator.
  void end(protocol::JobResult job_result, Effects& out);
  void end_rejected(const protocol::Rejected& message, Effects& out);
  // All workers have succeeded, and so has the job: ends what they have left running.
  void end_well(Effects& out);
  void finish_if_done(Effects& out);
  // No process is left, and the coordinator cannot be asked: a node that was told to leave ends by itself, unless it
  // is to vote first.
  void leave_unasked(Effects& out);
  bool waits_in_barrier() const;
  void barrier_is_over(Effects& out);
  // Tells the coordinator that the node leaves. If the coordinator moves, the next leader has to know that, or it takes
  // the node for lost.
  void ask_to_leave(Effects& out);
  bool waits_to_leave() const { return departure_ != Departure::kNot && !job_result_; }
  // Leaves with its own success, whatever becomes of the job.
  void depart(Effects& out);
  protocol::JobResult stopped_by_order() const;
  // Leaves workers that are being stopped already no more time than this.
  void hurry(std::int64_t longest_ms, Effects& out);

  // A round was ordered, and is not being stopped.
  bool is_in_round() const;
  bool runs_or_succeeded() const;
  // Processes of a round are being ended, or were.
  bool is_stopping() const;
  // Processes of a round are being ended, or the node lingers after that.
  bool ends_processes() const { return is_stopping() && !nothing_left_; }
  // All processes of the round are gone, and the node waits for something else.
  bool lingers() const { return awaits_ == Awaits::kOrder || awaits_ == Awaits::kCrash; }
  NodeWaits::For waits_for() const;
  NodeActivity activity() const;
  std::string why_stopping() const;
  // Called after each event with its effects.
  void check_invariants(const Effects& out) const;

  NodeSettings settings_;
  std::int64_t now_ms_ = 0;  // of the present event
  State state_ = State::kIdle;
  NodeRound round_;
  Preparation preparation_;  // valid while state_ is kPreparing
  EarlyStop early_;
  KillLadder kill_ladder_;
  NodeTimer timer_;
  LeaveSignals leaving_;
  NodeWaits waits_;
  // What the node waits for beside the end of processes: the answer to FindBackground, or, although all of them are
  // gone, a signal to elastic-run that may follow the one to its workers, or the answer to FindCrash.
  enum class Awaits : std::uint8_t { kNothing, kBackground, kOrder, kCrash };
  Awaits awaits_ = Awaits::kNothing;
  std::optional<protocol::JobResult> job_result_;
  FailureDetails details_;
  HangAids hang_;
  // The node's workers have succeeded, and it has waited long enough: it wants to leave, and has logged that.
  enum class Departure : std::uint8_t { kNot, kWanted, kLogged };
  Departure departure_ = Departure::kNot;
  bool nothing_left_ = false;        // the job is over, and no process of its last round is left
  bool ends_with_guardian_ = false;  // the guardian was lost, and the job ends with it, since its coordinator is here
  bool dismissed_ = false;
  struct Away {
    std::optional<std::int64_t> votes_for_ms = {};  // Detached::votes_for_ms, until that is over
  };
  std::optional<Away> away_;  // there is no session with the coordinator
};

}  // namespace elastic::agent
