#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "src/base/exit_status.h"
#include "src/base/waiting.h"
#include "src/status/snapshot.h"

namespace elastic::agent {

// What one node's decisions depend on. Times are milliseconds.
struct NodeSettings {
  int local_world_size = 1;
  std::string role = "default";
  std::int64_t shutdown_timeout_ms = 30'000;  // from SIGTERM to SIGKILL
  // The same after a SIGTERM to elastic-run, whose sender (Slurm, Kubernetes) sends SIGKILL 30 s later.
  std::int64_t terminated_timeout_ms = 25'000;
  // From SIGKILL until the agent stops waiting for a worker that does not end.
  std::int64_t stuck_timeout_ms = 5'000;
  bool ignore_stuck_workers = false;   // the job goes on without such a worker; otherwise it fails
  bool leave_background = false;       // processes that successful workers have left running live on after the job
  std::set<int> forward_signals = {};  // handed to the workers, and without any other effect
  // Whoever signals elastic-run (Slurm) signals its workers, too, once: a second SIGTERM does not mean "now".
  bool signals_are_shared = false;
  bool logs = false;  // there is a log directory
  // What the node tells the coordinator of itself; see protocol::NodeJoins.
  protocol::AgentId agent = 1;
  std::string address = {};
  std::string addresses = {};
  std::optional<int> node_rank = {};
  bool hosts_coordinator = true;
  bool coordinator_may_move = false;  // another node may take the coordinator over while this one still hosts it
  protocol::JobTerms terms = {};
  protocol::JobRules rules = {};
  protocol::CheckRules check = {};
  std::string group = {};
  // How long a node whose workers have succeeded waits for the other nodes' workers, unless those need this node.
  std::int64_t exit_barrier_ms = 300'000;
  // The other nodes are told what is known of a worker here that is why the job fails.
  bool shares_details = false;
  // The coordinator is told by what a round's first failure can be recognised if it comes again (protocol::Crash).
  bool tells_crashes = false;
};

// --- Events: what happens to an agent. ---

struct Begin {};
struct FromCoordinator {
  protocol::CoordinatorMessage message;
};
struct StoreOpened {
  protocol::StoreEndpoint endpoint;
};
struct StoreFailed {
  std::string reason;
};
struct LogsOpened {
  protocol::RoundNumber round = 0;
};
struct LogsFailed {
  protocol::RoundNumber round = 0;
  std::string reason;
};
struct WorkerStarted {
  int local_rank = 0;
  std::int64_t pid = 0;
};
struct WorkerNotStarted {
  int local_rank = 0;
  std::string reason;
};
struct WorkerExited {
  int local_rank = 0;
  ExitStatus exit;
  std::int64_t wall_ms = 0;  // Unix time in milliseconds
};
struct AllGone {};     // no process is left in any worker's process group
struct TimerFired {};  // the one of StartTimer
struct SignalReceived {
  int signal = 0;
  // The process that sent it, where that is a worker or one that a worker has started; 0: any other.
  std::int64_t worker = 0;
};
// elastic-run's outer process, the launcher's parent, has died.
struct GuardianLost {
  std::int64_t parent = 0;  // its process number; 0: unknown
};
// The answer to NameSurvivors: the processes that AwaitAllGone still waits for, as text for a message.
struct SurvivorsNamed {
  std::string text;
};
// The answer to FindBackground: the processes that were found, as text for a message; empty: none.
struct BackgroundFound {
  std::string text;
};
// The answer to GatherDetails: what the other nodes are told of the worker that failed first.
struct DetailsGathered {
  std::string text;  // at most limits::kAgentDetailsBytes
};
// The answer to FindCrash: by what the round's first failure on this node can be recognised.
struct CrashFound {
  protocol::RoundNumber round = 0;
  std::optional<protocol::Crash> crash = {};
};
// The answer to CheckNode.
struct NodeChecked {
  protocol::RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string result;
};
// There is no session with the coordinator, or there is one again. At first there is one.
struct Detached {};
struct Attached {};
// The coordinator has been out of reach for so long that other nodes may have been given the ranks of our workers.
struct LeaseOver {};
// The link has stopped looking for the coordinator.
struct GivenUp {
  std::string reason;
};
using Event =
    std::variant<Begin, NodeChecked, Detached, Attached, LeaseOver, GivenUp, FromCoordinator, StoreOpened, StoreFailed,
                 LogsOpened, LogsFailed, WorkerStarted, WorkerNotStarted, WorkerExited, AllGone, TimerFired,
                 SignalReceived, GuardianLost, SurvivorsNamed, BackgroundFound, DetailsGathered, CrashFound>;

// --- Effects: what an agent wants done, in this order. ---

struct ToCoordinator {
  protocol::AgentMessage message;
};
// Open an empty store for the round; answered by one StoreOpened or StoreFailed each, in the order of the
// orders, however late.
struct OpenStore {
  std::string admits = {};  // PrepareRound::admits
};
// The round's workers are gone, and no process may write into its store any more.
struct CloseStore {};
// Start every worker of the round, local rank 0 first; answered by a WorkerStarted each, or by one
// WorkerNotStarted after which the rest is not tried.
struct StartWorkers {
  protocol::PrepareRound round;
  protocol::StoreEndpoint store;
};
// One phase of the check before training; answered by NodeChecked.
struct CheckNode {
  protocol::RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string order;
};
// Make the log directories of a round, and the files that its workers write to. Answered by LogsOpened or
// LogsFailed, at some time, or never, where the file system hangs.
struct OpenLogs {
  protocol::RoundNumber round = 0;
  int restart_count = 0;
};
// Make as much of that as can be made for a next round, which may never come. No answer.
struct PrepareLogs {};
// Go on without logs from now on, and warn of it.
struct GiveUpLogs {};
// Name the processes that AwaitAllGone waits for. Answered by SurvivorsNamed, if there are any.
struct NameSurvivors {};
// All workers have succeeded: name the processes that they have left running. Answered by BackgroundFound.
struct FindBackground {};
// Those processes are not ended, not even when this process and the guardian end.
struct LeaveBackground {};
// Stop waiting for processes that do not end.
struct AbandonWorkers {};
// No process of the last round is left, and one of its workers here is why the job has failed: read what is known of
// it. Answered by DetailsGathered, for which the agent waits 2 s at most; Finish may come before the answer.
struct GatherDetails {};
// No process of the round is left, and a worker has failed here: read by what the failure can be recognised. Answered
// by CrashFound, for which the next round waits 1 s at most.
struct FindCrash {
  protocol::RoundNumber round = 0;
};
// All workers are stopped, as SIGTSTP asked, and the launcher may be stopped now.
struct Paused {};
// Warn the user.
struct Warn {
  std::string text;
  std::string_view event;  // its name in docs/events.md
};
struct SignalWorkers {
  // Why they are signalled, and with it who may have signalled them already: see SharedSignals.
  enum class Cause : std::uint8_t {
    kOurs,         // the agent has decided it: nobody has
    kOthersOrder,  // the coordinator has ordered it: perhaps whoever has signalled another node
    kFromOutside,  // elastic-run or a worker got a signal: whoever has sent that
  };
  int signal = 0;
  Cause cause = Cause::kOurs;
};
// Answered by AllGone, at once if there is nothing to wait for.
struct AwaitAllGone {};
struct StartTimer {
  std::int64_t delay_ms = 0;
};
struct StopTimer {};
// The agent is done.
struct Finish {
  protocol::Verdict verdict;
  // The text of DetailsGathered, of the node where the first failure was; empty if there is none.
  std::string details = {};
};
using Effect = std::variant<ToCoordinator, CheckNode, OpenStore, CloseStore, OpenLogs, PrepareLogs, GiveUpLogs,
                            StartWorkers, SignalWorkers, AwaitAllGone, NameSurvivors, FindBackground, LeaveBackground,
                            AbandonWorkers, Paused, StartTimer, StopTimer, Warn, GatherDetails, FindCrash, Finish>;
using Effects = std::vector<Effect>;

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
  bool has_verdict() const { return verdict_.has_value(); }
  // Null before there is one.
  const protocol::Verdict* verdict() const { return verdict_ ? &*verdict_ : nullptr; }
  // No coordinator needs this node's verdict any more, nor has anything to say to it.
  bool is_dismissed() const { return dismissed_; }
  // What the node waits for, for the user; nothing while workers run.
  std::optional<Waiting> waiting() const;
  // The same for a node that is idle and has a session with the coordinator.
  std::optional<Waiting> waiting_for_round() const;
  // The node's status, without what only its owner knows.
  status::Node status() const;
  // The rank of this node's local rank 0 in the last round.
  int base_rank() const { return round_.place.base_rank; }
  // The failures of the last round on this node, in the order in which its workers ended.
  const std::vector<protocol::WorkerFailure>& failures() const { return failures_; }
  // Whether the coordinator is in this process.
  void set_hosts_coordinator(bool hosts) { settings_.hosts_coordinator = hosts; }

 private:
  enum class State { kIdle, kPreparing, kRunning, kSucceeded, kStopping, kEnding, kEnded };
  struct Worker {
    std::int64_t pid = 0;
    bool exited = false;
  };

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
  void on(const AllGone&, std::int64_t now_ms, Effects& out);
  void on(const TimerFired&, std::int64_t now_ms, Effects& out);
  void on(const SignalReceived& event, std::int64_t now_ms, Effects& out);
  void on(const GuardianLost& event, std::int64_t now_ms, Effects& out);
  void on(const SurvivorsNamed& event, std::int64_t now_ms, Effects& out);
  void on(const BackgroundFound& event, std::int64_t now_ms, Effects& out);
  void on(const DetailsGathered& event, std::int64_t now_ms, Effects& out);
  void on(const CrashFound& event, std::int64_t now_ms, Effects& out);

  void on(const protocol::PrepareRound& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::RunWorkers& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::StopWorkers& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::EndJob& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::RunCheck& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::Dismiss& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::Rejected& message, std::int64_t now_ms, Effects& out);
  void on(const protocol::AreYouThere&, std::int64_t, Effects&) {}  // the link has answered it
  void on(const protocol::Awaiting& message, std::int64_t now_ms, Effects& out);

  // Called once for each answer to OpenStore. True if it is about the store of the round that is being prepared.
  bool is_store_of_this_round();
  // Starts the workers if the coordinator has ordered that and their log files are open.
  void start_if_ready(Effects& out);
  // Begins to stop the round with this signal; does nothing if that has begun already.
  void stop(int signal, SignalWorkers::Cause cause, Effects& out);
  // Signals all processes of the round and waits for their end.
  void sweep(int signal, SignalWorkers::Cause cause, Effects& out);
  void kill(Effects& out);
  void kill_round(Effects& out);
  // No process of the round is left, or none that the node waits for.
  void gone(Effects& out);
  // The round was stopped because a worker failed here in a way that may come again in the next round.
  bool may_have_crashed() const;
  void end(protocol::Verdict verdict, Effects& out);
  // All workers have succeeded, and so has the job: ends what they have left running.
  void end_well(Effects& out);
  void finish_if_done(Effects& out);
  // The first failure of the round is a death by a signal that is sent to whole process trees.
  bool ended_from_outside() const;
  // A worker that failed here is why the job has failed.
  bool is_cause_of(const protocol::Verdict& verdict) const;
  void gather_if_due(Effects& out);
  void has_gathered(std::string text, Effects& out);
  bool waits_in_barrier() const;
  protocol::Verdict stopped_by_order() const;
  void hurry(std::int64_t now_ms, Effects& out);
  void pause(std::int64_t now_ms, Effects& out);
  void resume(Effects& out);
  protocol::WorkerFailure failure_of(const WorkerExited& event) const;

  enum class Waited { kNothing, kLogs, kCheck, kEnd, kDeath };
  Waited waited_for() const;
  status::Activity activity() const;
  std::string why_stopping() const;
  std::string who_is_left() const;

  NodeSettings settings_;
  State state_ = State::kIdle;
  protocol::PrepareRound round_;
  std::vector<Worker> workers_;
  int exited_well_ = 0;
  bool logs_awaited_ = false;  // OpenLogs of the round that is prepared is not answered
  bool has_run_ = false;       // workers were started in this round or an earlier one
  int stores_awaited_ = 0;     // OpenStore orders without an answer; answers come in the orders' order
  // The workers are to be started with this store, once that is possible.
  std::optional<protocol::StoreEndpoint> run_with_store_;
  std::vector<protocol::WorkerFailure> failures_;
  // How far sweep() has got, and with it what the timer means when it fires.
  enum class Sweep { kTold, kKilled, kNamed };
  Sweep sweep_ = Sweep::kTold;
  std::string survivors_;                    // the last text of SurvivorsNamed
  std::string left_behind_;                  // processes of the last round that SIGKILL has not ended
  std::optional<std::int64_t> deadline_ms_;  // when the timer fires
  std::optional<std::int64_t> rest_ms_;      // what was left of the timer when SIGTSTP stopped it
  bool awaiting_background_ = false;         // FindBackground is not answered
  // What the node waits for although all processes of the round are gone: a signal to elastic-run that may follow the
  // one to its workers, or the answer to FindCrash.
  enum class Lingers { kNot, kForOrder, kForCrash };
  Lingers lingers_ = Lingers::kNot;
  std::optional<protocol::Crash> crash_;           // what CrashFound has said of this round
  bool terminated_ = false;                        // SIGTERM has come from outside
  std::optional<std::int64_t> told_to_leave_ms_;   // when the first signal to end came
  std::optional<std::int64_t> asked_to_leave_ms_;  // when the first one that no worker had sent came
  int leave_signal_ = 0;
  // The last phase of this round's check that was ordered.
  std::optional<std::uint32_t> check_phase_;
  bool check_is_answered_ = false;
  Waited waited_ = Waited::kNothing;  // what the node waited for after the last event
  std::int64_t waited_since_ms_ = 0;
  bool was_idle_ = false;
  std::int64_t idle_since_ms_ = 0;
  std::optional<protocol::Verdict> verdict_;
  bool nothing_left_ = false;  // the job is over, and no process of its last round is left
  // Whether the details of the first failure are to be gathered when nothing is left, or are being gathered.
  enum class Gathering { kNone, kDue, kAwaited };
  Gathering gathering_ = Gathering::kNone;
  std::string details_;              // those that this node has gathered
  std::string told_details_;         // those that the coordinator has sent to all nodes
  bool ends_with_guardian_ = false;  // the guardian was lost, and the job ends with it, for its coordinator is here
  bool dismissed_ = false;           // see is_dismissed()
  bool detached_ = false;            // there is no session with the coordinator
  // What the coordinator last said that this node waits for, with the times by this node's clock.
  struct News {
    protocol::Awaiting message;
    std::int64_t since_ms = 0;
    std::optional<std::int64_t> until_ms;
    std::int64_t because_ms = 0;
  };
  std::optional<News> news_;
};

}  // namespace elastic::agent
