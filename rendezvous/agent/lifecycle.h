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

// What one node's decisions depend on.
struct NodeSettings {
  int local_world_size = 1;
  std::string role = "default";
  std::int64_t shutdown_timeout_ms = 30'000;  // from SIGTERM to SIGKILL
  // The same after a SIGTERM from outside, whose sender will lose patience too.
  std::int64_t terminated_timeout_ms = 25'000;
  // From SIGKILL until a worker that does not end is given up.
  std::int64_t stuck_timeout_ms = 5'000;
  bool ignore_stuck_workers = false;   // go on without them; else the job fails
  bool leave_background = false;       // what workers that succeed leave behind lives on after the job's success
  std::set<int> forward_signals = {};  // handed to the workers, otherwise without effect
  // Whoever signals this node says so to all of its processes, and once: a second SIGTERM is no impatient user's.
  bool signals_are_shared = false;
  bool logs = false;  // there is a log directory
  // What the coordinator is told of the node.
  protocol::AgentId agent = 1;
  std::string address = {};
  std::string addresses = {};
  std::optional<int> node_rank = {};
  bool hosts_coordinator = true;
  bool coordinator_may_move = false;  // another node may come to host it while this one still does
  protocol::JobTerms terms = {};
  protocol::JobRules rules = {};
  protocol::CheckRules check = {};
  std::string group = {};
  // How long a node whose workers have succeeded waits for the others, unless they need it.
  std::int64_t exit_barrier_ms = 300'000;
  // Where a worker of this node is why the job fails, the others hear what is known of it.
  bool shares_details = false;
  // The coordinator hears of the first failure of a round whether it may come again (protocol::Crash).
  bool tells_crashes = false;
};

// What happens to an agent.
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
struct AllGone {};  // no process is left in any worker's group
struct TimerFired {};
struct SignalReceived {
  int signal = 0;
  // The process that has sent it, where that is a worker or what one has started; 0: whoever has started us, or others.
  std::int64_t worker = 0;
};
struct GuardianLost {};  // the outer process has died
// What AwaitAllGone still waits for, as text for a message; the answer to NameSurvivors.
struct SurvivorsNamed {
  std::string text;
};
// What FindBackground has found, as text for a message; empty: nothing.
struct BackgroundFound {
  std::string text;
};
// What the others are to hear of the worker that failed first; the answer to GatherDetails.
struct DetailsGathered {
  std::string text;  // at most limits::kAgentDetailsBytes
};
// What the round's first failure here was; the answer to FindCrash.
struct CrashFound {
  protocol::RoundNumber round = 0;
  std::optional<protocol::Crash> crash = {};
};
struct NodeChecked {
  protocol::RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string result;
};
// The coordinator cannot be reached, or can again. At first it can.
struct Detached {};
struct Attached {};
// The coordinator has been out of reach for so long that others may have our workers' ranks.
struct LeaseOver {};
// It will not be looked for any longer.
struct GivenUp {
  std::string reason;
};
using Event =
    std::variant<Begin, NodeChecked, Detached, Attached, LeaseOver, GivenUp, FromCoordinator, StoreOpened, StoreFailed,
                 LogsOpened, LogsFailed, WorkerStarted, WorkerNotStarted, WorkerExited, AllGone, TimerFired,
                 SignalReceived, GuardianLost, SurvivorsNamed, BackgroundFound, DetailsGathered, CrashFound>;

// What an agent wants done, in this order.
struct ToCoordinator {
  protocol::AgentMessage message;
};
// Open an empty store for the round; answered by one StoreOpened or StoreFailed each, in the order of the
// orders, however late.
struct OpenStore {
  std::string admits = {};  // PrepareRound::admits
};
// The round's workers are gone: nobody may write into its store any more.
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
// The same for a further round, as far as that goes, which may never come. No answer.
struct PrepareLogs {};
// Go on without logs from now on, and say so.
struct GiveUpLogs {};
// Answered by SurvivorsNamed, if there are any.
struct NameSurvivors {};
// All workers have succeeded: name what they have left behind and does not end by itself. Answered by BackgroundFound.
struct FindBackground {};
// It lives on, also after the end of this process and of the guardian.
struct LeaveBackground {};
// Wait no longer for what does not end.
struct AbandonWorkers {};
// Nothing of the last round is left, and one of its workers here is why the job has failed: answered by
// DetailsGathered. It is waited for 2 s at most; Finish may come before the answer.
struct GatherDetails {};
// Nothing of the round is left, and a worker has failed here: answered by CrashFound, for which the next round waits
// 1 s at most.
struct FindCrash {
  protocol::RoundNumber round = 0;
};
// All workers are stopped, as SIGTSTP asked: the launcher may be, too.
struct Paused {};
// Tell the user, as a warning.
struct Warn {
  std::string text;
  std::string_view event;  // a word for programs
};
struct SignalWorkers {
  // Who else may have signalled them: see SharedSignals.
  enum class Cause : std::uint8_t {
    kOurs,         // nobody
    kOthersOrder,  // whoever has signalled another node, perhaps
    kFromOutside,  // whoever has signalled us, or some of them
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
  // What DetailsGathered has said, here or on the node where the first failure was; empty where nobody has.
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
// Stopping is SIGTERM to every group, then SIGKILL when the shutdown timeout is over; it ends when nothing
// that a worker started is left. What does not end after SIGKILL is named 1 s later and given up when
// the stuck timeout is over.
class Lifecycle {
 public:
  explicit Lifecycle(NodeSettings settings);

  // `now_ms` is a monotonic clock's milliseconds.
  Effects on_event(const Event& event, std::int64_t now_ms);

  // What opens a session with the coordinator; its `facts` lack term and incarnation, which the session knows.
  protocol::NodeJoins joins() const;
  // No process of a round is here, so that the node may be in another one.
  bool is_idle() const { return state_ == State::kIdle; }
  // Workers may run, and the coordinator could give their ranks to others.
  bool needs_lease() const;
  bool has_verdict() const { return verdict_.has_value(); }
  // Null before it has heard one.
  const protocol::Verdict* verdict() const { return verdict_ ? &*verdict_ : nullptr; }
  // Nobody needs to hear of its verdict any more, nor to say anything to it.
  bool is_dismissed() const { return dismissed_; }
  // What it waits for, as the user is to be told; nothing where a wait is no news (workers that run).
  std::optional<Waiting> waiting() const;
  // The same where it is idle and known to the coordinator.
  std::optional<Waiting> waiting_for_round() const;
  // What is to be told of this node, as far as it is known here.
  status::Node status() const;
  // The rank of this node's local rank 0 in the last round.
  int base_rank() const { return round_.place.base_rank; }
  // Of the last round, on this node.
  const std::vector<protocol::WorkerFailure>& failures() const { return failures_; }
  // The coordinator is in this process, or is not.
  void set_hosts_coordinator(bool hosts) { settings_.hosts_coordinator = hosts; }

 private:
  enum class State { kIdle, kPreparing, kRunning, kSucceeded, kStopping, kEnding, kEnded };
  struct Worker {
    std::int64_t pid = 0;
    bool exited = false;
  };

  void on(const Begin&, std::int64_t now_ms, Effects& out);
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
  void on(const GuardianLost&, std::int64_t now_ms, Effects& out);
  void on(const SurvivorsNamed& event, std::int64_t now_ms, Effects& out);
  void on(const BackgroundFound& event, std::int64_t now_ms, Effects& out);
  void on(const DetailsGathered& event, std::int64_t now_ms, Effects& out);
  void on(const CrashFound& event, std::int64_t now_ms, Effects& out);

  void told(const protocol::PrepareRound& message, Effects& out);
  void told(const protocol::RunWorkers& message, Effects& out);
  void told(const protocol::StopWorkers& message, Effects& out);
  void told(const protocol::EndJob& message, Effects& out);
  void told(const protocol::RunCheck& message, Effects& out);
  void told(const protocol::Dismiss& message, Effects& out);
  void told(const protocol::Rejected& message, Effects& out);
  void told(const protocol::AreYouThere&, Effects&) {}  // the session answers
  void told(const protocol::Awaiting&, Effects&) {}     // taken with its time before
  void take_news(const protocol::Awaiting& message, std::int64_t now_ms);

  // What has been answered is the store of the round that is being prepared.
  bool is_store_of_this_round();
  // Starts the workers once they are ordered and their logs are there.
  void start_if_ready(Effects& out);
  // Begins to stop the round with this signal; does nothing if that has begun already.
  void stop(int signal, SignalWorkers::Cause cause, Effects& out);
  void sweep(int signal, SignalWorkers::Cause cause, Effects& out);
  void kill(Effects& out);
  void kill_round(Effects& out);
  void gone(Effects& out);
  // The round was stopped because a worker failed here, and of what may tell how the next one ends.
  bool may_have_crashed() const;
  void end(protocol::Verdict verdict, Effects& out);
  // All workers have succeeded, and so has the job.
  void end_well(Effects& out);
  void finish_if_done(Effects& out);
  // A worker that failed here is why the job has.
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
  bool logs_awaited_ = false;  // those of the round that is prepared
  bool has_run_ = false;       // workers were started, in whatever round
  int stores_awaited_ = 0;     // ordered and not answered, those of rounds that are over first
  std::optional<protocol::StoreEndpoint> run_with_store_;  // ordered, and not done yet
  std::vector<protocol::WorkerFailure> failures_;
  // How far a sweep has got, and with it what the timer means when it fires.
  enum class Sweep { kTold, kKilled, kNamed };
  Sweep sweep_ = Sweep::kTold;
  std::string survivors_;                    // as last named
  std::string left_behind_;                  // of the last round: given up
  std::optional<std::int64_t> deadline_ms_;  // when the timer that runs will fire
  std::optional<std::int64_t> rest_ms_;      // of the timer that SIGTSTP stopped
  bool awaiting_background_ = false;         // what workers have left behind is being looked for
  // All are gone, and we are not done yet: a signal to us may follow the one to the workers, or what the first of them
  // failed of is being looked for.
  enum class Lingers { kNot, kForOrder, kForCrash };
  Lingers lingers_ = Lingers::kNot;
  std::optional<protocol::Crash> crash_;  // of the round
  bool terminated_ = false;
  std::optional<std::int64_t> told_to_leave_ms_;   // when the first signal to end came
  std::optional<std::int64_t> asked_to_leave_ms_;  // when the first one that no worker had sent came
  int leave_signal_ = 0;
  // Of this round's check, the last that was ordered.
  std::optional<std::uint32_t> check_phase_;
  bool check_is_answered_ = false;
  Waited waited_ = Waited::kNothing;  // after the last event
  std::int64_t waited_since_ms_ = 0;
  bool was_idle_ = false;
  std::int64_t idle_since_ms_ = 0;
  std::optional<protocol::Verdict> verdict_;
  bool nothing_left_ = false;  // of the last round, and the job is over
  // The others are to hear the details of the first failure: once nothing is left, and once they are gathered.
  enum class Gathering { kNone, kDue, kAwaited };
  Gathering gathering_ = Gathering::kNone;
  std::string details_;              // our own
  std::string told_details_;         // another node's, or ours again
  bool ends_with_guardian_ = false;  // the guardian was lost, and with it the job that has its coordinator here
  bool dismissed_ = false;           // nobody needs what we know of the verdict
  bool detached_ = false;
  // The last word of what is waited for, and since when and until when that is by our clock.
  struct News {
    protocol::Awaiting message;
    std::int64_t since_ms = 0;
    std::optional<std::int64_t> until_ms;
    std::int64_t because_ms = 0;
  };
  std::optional<News> news_;
};

}  // namespace elastic::agent
