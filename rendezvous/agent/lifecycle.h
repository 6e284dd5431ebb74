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

// One node's life: joins, runs the workers of a round, stops them, waits for the next, ends.
//
//   idle --PrepareRound--> preparing --RunWorkers--> running --all exit 0--> succeeded
//    ^                         |                        | failure, StopWorkers    |
//    |                         +------> stopping <------+-------------------------+
//    +----------all gone----------------- |            any --EndJob--> ending --all gone--> ended
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
  friend struct LifecycleBreaker;  // a test's

  enum class State { kIdle, kPreparing, kRunning, kSucceeded, kStopping, kEnding, kEnded };

  void on(const Begin&, std::int64_t, Effects&) {}  // the agent joins by itself
  void on(const NodeChecked& event, std::int64_t now_ms, Effects& out);
  void on(const Detached&, std::int64_t now_ms, Effects& out);
  void on(const Attached&, std::int64_t now_ms, Effects& out);
  void on(const LeaseOver&, std::int64_t now_ms, Effects& out);
  void on(const GivenUp& event, std::int64_t now_ms, Effects& out);
  void on(const FromCoordinator& event, std::int64_t now_ms, Effects& out);
  void on(const StoreOpened& event, std::int64_t now_ms, Effects& out);
  void on(const StoreFailed& event, std::int64_t now_ms, Effects& out);
  void on(const LogsOpened& event, std::int64_t now_ms, Effects& out);
  void on(const LogsFailed& event, std::int64_t now_ms, Effects& out);
  void on(const WorkerStarted& event, std::int64_t now_ms, Effects& out);
  void on(const WorkerNotStarted& event, std::int64_t now_ms, Effects& out);
  void on(const WorkerExited& event, std::int64_t now_ms, Effects& out);
  void on(const ErrorFileWritten& event, std::int64_t now_ms, Effects& out);
  void on(const AllGone& event, std::int64_t now_ms, Effects& out);
  void on(const TimerFired&, std::int64_t now_ms, Effects& out);
  void on(const SignalReceived& event, std::int64_t now_ms, Effects& out);
  void on(const GuardianLost& event, std::int64_t now_ms, Effects& out);
  void on(const SurvivorsNamed& event, std::int64_t now_ms, Effects& out);
  void on(const BackgroundFound& event, std::int64_t now_ms, Effects& out);
  void on(const DetailsGathered& event, std::int64_t now_ms, Effects& out);
  void on(const CrashFound& event, std::int64_t now_ms, Effects& out);
  void on(const ProgressMade& event, std::int64_t now_ms, Effects& out);
  void on(const StacksCollected& event, std::int64_t now_ms, Effects& out);
  void on(const EvidenceRead& event, std::int64_t, Effects& out) { hang_.on(event, out); }
  void on(const DumpsAwaited& event, std::int64_t now_ms, Effects& out);
  void on(const LoaderSaid& event, std::int64_t, Effects& out);
  void on(const SignsSeen& event, std::int64_t now_ms, Effects& out) { hang_.on(event, now_ms, out); }

  void on(const protocol::PrepareRound& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::RunWorkers& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::StopWorkers& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::EndJob& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::RunCheck& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::Dismiss& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::Rejected& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::AreYouThere&, std::int64_t, Effects&) {}  // the link has answered it
  void on(const protocol::Resigned&, std::int64_t, Effects&) {}     // the link connects again
  void on(const protocol::NextRound&, std::int64_t, Effects&) {}    // the link has answered
  void on(const protocol::Awaiting& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::LeaveJob& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::StacksWanted& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::CollectEvidence& message, std::int64_t, Effects& out) { hang_.on(message, out); }
  void on(const protocol::HangTold& message, std::int64_t, Effects& out) { hang_.on(message, out); }
  void on(const protocol::HangOver& message, std::int64_t, Effects& out) { hang_.on(message, out); }
  void on(const protocol::KeepState& message, std::int64_t, Effects&) { round_.keep(message); }
  void on(const protocol::LoaderTold& message, std::int64_t, Effects& out);

  // Starts the workers if the coordinator has ordered that and their log files are open.
  void start_if_ready(Effects& out);
  // Begins to stop the round with this signal; does nothing if that has begun already.
  void stop(int signal, SignalWorkers::Cause cause, Effects& out);
  // Signals all processes of the round and waits for their end.
  void kill_ladder(int signal, SignalWorkers::Cause cause, Effects& out);
  void kill_round(Effects& out);
  // The worker whose error file has stopped the round is signalled like the others.
  void stop_spared(int signal, SignalWorkers::Cause cause, Effects& out);
  // NodeStopped::false_alarm, when no process of the round is left.
  std::optional<int> rank_of_false_alarm() const;
  // This node was told to end: tells the coordinator, and stops the round if there is one.
  void leave(SignalWorkers::Cause cause, Effects& out);
  // Processes have survived SIGKILL, and are given up.
  void tell_left_behind(Effects& out);
  // No process of the round is left, or none that the node waits for.
  void gone(Effects& out);
  // The round was stopped because a worker failed here in a way that may come again in the next round.
  bool may_have_crashed() const;
  void end(protocol::JobResult job_result, Effects& out);
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
  void hurry(std::int64_t longest_ms, std::int64_t now_ms, Effects& out);
  // A worker has failed here, and then the order has come to end the round for a hang: the workers that hang here are
  // ended as on the other nodes.
  void hurry_for_hang(std::int64_t now_ms, Effects& out);

  // Processes of a round are being ended, or the node lingers after that.
  bool ends_processes() const { return state_ == State::kStopping || (state_ == State::kEnding && !nothing_left_); }
  NodeWaits::For waits_for() const;
  NodeActivity activity() const;
  std::string why_stopping() const;
  // Called after each event with its effects.
  void check_invariants(const Effects& out) const;

  NodeSettings settings_;
  State state_ = State::kIdle;
  NodeRound round_;
  Preparation preparation_;  // valid while state_ is kPreparing
  EarlyStop early_;
  KillLadder kill_ladder_;
  NodeTimer timer_;
  LeaveSignals leaving_;
  NodeWaits waits_;
  bool awaiting_background_ = false;  // FindBackground is not answered
  // What the node waits for although all processes of the round are gone: a signal to elastic-run that may follow the
  // one to its workers, or the answer to FindCrash.
  enum class Lingers : std::uint8_t { kNot, kForOrder, kForCrash };
  Lingers lingers_ = Lingers::kNot;
  std::optional<protocol::JobResult> job_result_;
  FailureDetails details_;
  HangAids hang_;
  // The node's workers have succeeded, and it has waited long enough: it wants to leave, and has logged that.
  enum class Departure : std::uint8_t { kNot, kWanted, kLogged };
  Departure departure_ = Departure::kNot;
  bool nothing_left_ = false;        // the job is over, and no process of its last round is left
  bool ends_with_guardian_ = false;  // the guardian was lost, and the job ends with it, since its coordinator is here
  bool dismissed_ = false;
  bool detached_ = false;  // there is no session with the coordinator
  // While detached: Detached::votes_for_ms.
  std::optional<std::int64_t> votes_for_ms_;
};

}  // namespace elastic::agent
