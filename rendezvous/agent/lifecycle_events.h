#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "src/base/exit_status.h"
#include "src/base/worker_start.h"

namespace elastic::agent {

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
  WorkerStart start = WorkerStart::kFresh;
  std::int64_t spared_cpu_ms = 0;  // of a warm one: the processor time of the imports that it was spared
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
// A worker has written a whole error file, which torch's @record does before it ends of an exception.
struct ErrorFileWritten {
  protocol::RoundNumber round = 0;
  int local_rank = 0;
  std::int64_t wall_ms = 0;  // when it was seen: Unix time in milliseconds
};
// No process is left in any worker's process group.
struct AllGone {
  std::shared_ptr<const protocol::TrainingPorts> training_ports = {};  // as they are now, where --training-port acts
};
struct TimerFired {};  // the timer of StartTimer
struct SignalReceived {
  int signal = 0;
  // The process that sent it, if that is a worker or one that a worker has started; 0: any other.
  std::int64_t worker = 0;
};
// What the segment file says of this node, which the scheduler writes (--segment-health-dir): the answer to
// LookAtSegment, or unasked.
struct SegmentSeen {
  std::string drained = {};  // empty: it may be in a round; else the file's path, and what stands there, for people
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
// The answer to FindCrash: what identifies the round's first failure on this node.
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
struct Detached {
  // The coordinator has transferred the leadership, and the node is to stay to vote for another one, for so many
  // milliseconds at most; empty: it may end.
  std::optional<std::int64_t> votes_for_ms = {};
};
struct Attached {};
// The coordinator has been out of reach for so long that other nodes may have been given the ranks of our workers.
struct LeaseOver {};
// The link has stopped looking for the coordinator.
struct GivenUp {
  std::string reason;
};
// The node's workers have made progress, of which the coordinator is to be told.
struct ProgressMade {
  protocol::NodeProgress progress;
};
// What other nodes of the round are to hear of the loaders of this one.
struct LoaderSaid {
  protocol::LoaderSays says;
};
// The answer to CollectStacks.
struct StacksCollected {
  protocol::NodeStacks told;
};
// The answer to ReadEvidence.
struct EvidenceRead {
  protocol::RoundNumber round = 0;
  std::uint32_t collection = 0;
  hang::NodeFacts facts = {};
};
// The answer to AwaitDumps: the dumps are there, or will not come.
struct DumpsAwaited {
  protocol::RoundNumber round = 0;
};
// The signs of a hang that the node sees now and then, without being asked.
struct SignsSeen {
  protocol::RoundNumber round = 0;
  protocol::HangFacts facts = {};
  bool disks_move = false;
};
struct Event : std::variant<Begin, NodeChecked, Detached, Attached, LeaseOver, GivenUp, FromCoordinator, StoreOpened,
                            StoreFailed, LogsOpened, LogsFailed, WorkerStarted, WorkerNotStarted, WorkerExited,
                            ErrorFileWritten, AllGone, TimerFired, SignalReceived, GuardianLost, SurvivorsNamed,
                            BackgroundFound, DetailsGathered, CrashFound, ProgressMade, StacksCollected, EvidenceRead,
                            DumpsAwaited, SignsSeen, LoaderSaid, SegmentSeen> {
  using variant::variant;
  Event(const Event& other);
  Event(Event&& other) noexcept;
  Event& operator=(const Event& other);
  Event& operator=(Event&& other) noexcept;
  ~Event();
};

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
// See what the workers are doing. Answered by StacksCollected.
struct CollectStacks {
  std::uint64_t collection = 0;  // NodeStacks::collection of the answer
};
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
// Look at this node's segment file. Answered by SegmentSeen, within 2 s.
struct LookAtSegment {};
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
// No process of the round is left, and a worker has failed here: read what identifies the failure, and, with
// --auto-tunning, whether it was for lack of memory. Answered by CrashFound, for which the next round waits 1 s at
// most.
struct FindCrash {
  protocol::RoundNumber round = 0;
};
// All workers are stopped, as SIGTSTP asked, and the launcher may be stopped now.
struct Paused {};
struct Warn {
  std::string text;
  std::string_view event;  // its name in docs/observing.md
};
// Read what this node's ranks do, as the coordinator has ordered; what was being read before is given up. Answered by
// EvidenceRead.
struct ReadEvidence {
  protocol::CollectEvidence order;
};
struct StopEvidence {};
// Set the key of the round's store, if it is here, at which workers dump their flight recorders, and read the dumps of
// this node's workers. Answered by DumpsAwaited, for which the agent waits 5 s at most.
struct AwaitDumps {
  protocol::RoundNumber round = 0;
};
// Tell the user of a hang, and that it is over.
struct TellHang {
  protocol::HangTold told;
};
struct TellHangOver {
  protocol::HangOver over;
};
// Another node of the round has said this of its loaders.
struct HearLoader {
  protocol::LoaderTold told;
};
struct SignalWorkers {
  // Why the workers are signalled, and so what else may have signalled them already: see SharedSignals.
  enum class Cause : std::uint8_t {
    kOurs,         // the agent has decided it: nothing else has
    kOthersOrder,  // the coordinator has ordered it: perhaps the sender of a signal to another node
    kFromOutside,  // elastic-run or a worker got a signal: its sender
  };
  int signal = 0;
  Cause cause = Cause::kOurs;
  std::optional<int> spared = {};  // this local rank is left alone
  std::optional<int> only = {};    // only this local rank is signalled
};
// Answered by AllGone, at once if there is nothing to wait for.
struct AwaitAllGone {};
struct StartTimer {
  std::int64_t delay_ms = 0;
};
struct StopTimer {};
// The agent is done.
struct Finish {
  protocol::JobResult job_result;
  // The text of DetailsGathered, of the node where the first failure was; empty if there is none.
  std::string details = {};
};
struct Effect
    : std::variant<ToCoordinator, CheckNode, OpenStore, CloseStore, OpenLogs, PrepareLogs, GiveUpLogs, StartWorkers,
                   SignalWorkers, AwaitAllGone, NameSurvivors, FindBackground, LeaveBackground, AbandonWorkers, Paused,
                   StartTimer, StopTimer, Warn, GatherDetails, FindCrash, Finish, CollectStacks, ReadEvidence,
                   StopEvidence, AwaitDumps, TellHang, TellHangOver, HearLoader, LookAtSegment> {
  using variant::variant;
  Effect(const Effect& other);
  Effect(Effect&& other) noexcept;
  Effect& operator=(const Effect& other);
  Effect& operator=(Effect&& other) noexcept;
  ~Effect();
};
using Effects = std::vector<Effect>;

}  // namespace elastic::agent
