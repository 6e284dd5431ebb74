#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "health/messages/check_rules.h"
#include "health/stacks/bounds.h"
#include "health/tuning/loader_word.h"
#include "rendezvous/protocol/election_parts.h"
#include "rendezvous/protocol/hang_parts.h"
#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/message_parts.h"
#include "src/base/limits.h"

// What agents and the coordinator tell each other, as plain values. Sessions carry them (session.h).
//
// Each struct has the list of its fields (src/base/fields.h), from which its bytes (codec.h) and its JSON in a
// recording follow. Beside what every archive has, these lists use
//
//   io.stamped(...)    the round of a message: in a frame it stands in the stamp, not among the fields
//
// A new minor version may add fields at the end of a message, and at the end of any struct in it: a reader passes over
// what it does not know, and what an older sender lacks keeps its initial value.
namespace elastic::protocol {

// The numbers of frames on the wire, which never change. A new minor version gives new frames kFirstOptional or above.
enum class FrameType : std::uint8_t {
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kWelcome = 4,
  kRefused = 5,
  kKeepAlive = 6,
  kLeaseGrant = 7,
  kNodeIsEmpty = 8,
  kLeaseAck = 9,
  // Agent to coordinator.
  kNodeJoins = 16,
  kStoreIsOpen = 17,
  kWorkerFailed = 18,
  kWorkersSucceeded = 19,
  kNodeCannotRun = 20,
  kNodeStopped = 21,
  kNodeLeaves = 22,
  kCheckDone = 23,
  kJobResultHeard = 24,
  kRoundHeard = 29,
  // Coordinator to agent.
  kPrepareRound = 48,
  kRunWorkers = 49,
  kStopWorkers = 50,
  kEndJob = 51,
  kRunCheck = 52,
  kDismiss = 53,
  kRejected = 54,
  kAreYouThere = 55,
  kAwaiting = 56,
  kLeaveJob = 62,
  kResigned = 63,
  kNextRound = 64,
  // From kFirstOptional on, in both directions.
  kNodeProgress = 128,
  kNodeStacks = 129,
  kStacksWanted = 130,
  kHangSigns = 131,
  kNodeEvidence = 132,
  kCollectEvidence = 133,
  kHangTold = 134,
  kHangOver = 135,
  kKeepState = 136,
  kLoaderSays = 137,
  kLoaderTold = 138,
};
// A reader ignores frames from here on that it does not know.
inline constexpr std::uint8_t kFirstOptional = 128;

// --- Agent to coordinator. -------------------------------------------------------------------------

// The first message of each session.
struct NodeJoins {
  static constexpr FrameType kType = FrameType::kNodeJoins;
  int local_world_size = 0;
  std::string role = {};
  AgentId agent = 0;
  std::string address = {};           // the name that the node gives itself: newcomers are ordered by it
  std::optional<int> node_rank = {};  // --node-rank, if the user gave it
  bool hosts_coordinator = false;     // the job ends with it
  JobTerms terms = {};
  JobRules rules = {};
  AgentFacts facts = {};
  std::string addresses = {};  // numeric, of its interfaces, with spaces between them
  health::CheckRules check = {};
  std::uint32_t session = 0;    // how many sessions the agent has opened before, if it counts them
  std::string group = {};       // nodes of one group are near each other, as in a rack: the check pairs by it
  std::uint16_t peer_port = 0;  // the port at which it can host the coordinator when that is lost; 0: it cannot
  // With --training-port: those of when it began, or of when its last round had ended.
  std::optional<TrainingPorts> training_ports = {};
  bool operator==(const NodeJoins&) const = default;
  static void fields(auto& io, auto& v) {
    io("address", v.address, bounds::kName);
    io("agent", v.agent);
    io("local_world_size", v.local_world_size);
    io("role", v.role, bounds::kName);
    io("node_rank", v.node_rank, bounds::kClaims);
    each(io, "hosts_coordinator", v.hosts_coordinator, "terms", v.terms, "rules", v.rules);
    io.if_set("facts", v.facts);
    io.if_set("addresses", v.addresses, at_most(limits::kAgentAddressesBytes));
    io.if_set("check_rules", v.check);
    io.if_set("session", v.session);
    io.if_set("group", v.group, bounds::kName);
    io.if_set("door", v.peer_port);
    io.at_end("training_ports", v.training_ports);
  }
};
// The answer to RunCheck: the node's result of this phase, in the check plan's own form.
struct CheckDone {
  static constexpr FrameType kType = FrameType::kCheckDone;
  RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string result;
  bool operator==(const CheckDone&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("phase", v.phase);
    io("result", v.result, bounds::kCheck);
  }
};
struct StoreIsOpen {
  static constexpr FrameType kType = FrameType::kStoreIsOpen;
  RoundNumber round = 0;
  StoreEndpoint endpoint;
  bool operator==(const StoreIsOpen&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("endpoint", v.endpoint);
  }
};
struct WorkerFailed {
  static constexpr FrameType kType = FrameType::kWorkerFailed;
  RoundNumber round = 0;
  WorkerFailure failure;
  // The worker has not ended, but has written its error file, for which its node stops the others. NodeStopped says
  // what has become of it.
  bool is_uncertain = false;
  bool operator==(const WorkerFailed&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("failure", v.failure);
    io.if_set("is_uncertain", v.is_uncertain);
  }
};
struct WorkersSucceeded {
  static constexpr FrameType kType = FrameType::kWorkersSucceeded;
  RoundNumber round = 0;
  bool operator==(const WorkersSucceeded&) const = default;
  static void fields(auto& io, auto& v) { io.stamped("round", v.round); }
};
// The node cannot run this round's workers at all (a program that cannot be executed, a port in use).
struct NodeCannotRun {
  static constexpr FrameType kType = FrameType::kNodeCannotRun;
  RoundNumber round = 0;
  std::string reason;
  // Processes are left that cannot be ended, and the user would have the job go on beside them (--stuck-worker=ignore).
  bool may_stay = false;
  bool operator==(const NodeCannotRun&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("reason", v.reason, bounds::kText);
    io.if_set("may_stay", v.may_stay);
  }
};
// No process of the round is left on the node.
struct NodeStopped {
  static constexpr FrameType kType = FrameType::kNodeStopped;
  RoundNumber round = 0;
  std::vector<WorkerFailure> failures;
  // The crash of the first failure, if it is one that may repeat and the node has found out.
  std::optional<Crash> crash = {};
  // The rank of a worker for whose error file the node had stopped the round, and which has not failed.
  std::optional<int> false_alarm = {};
  std::optional<TrainingPorts> training_ports = {};  // as in NodeJoins
  bool operator==(const NodeStopped&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("failures", v.failures, bounds::kFailures);
    io("crash", v.crash);
    io("false_alarm", v.false_alarm);
    io.at_end("training_ports", v.training_ports);
  }
};
// The node got a signal to end, or LeaveJob, and stops its workers. With signal 0 its workers have succeeded, and its
// exit barrier has timed out. With SIGKILL its outer process was killed, and it hosts the coordinator.
struct NodeLeaves {
  static constexpr FrameType kType = FrameType::kNodeLeaves;
  int signal = 0;             // SIGTERM for an order
  bool ordered = false;       // it got LeaveJob, or by_scheduler, and no signal before that
  bool by_scheduler = false;  // its segment file says that it is to leave (--segment-health-dir)
  bool operator==(const NodeLeaves&) const = default;
  static void fields(auto& io, auto& v) {
    io("signal", v.signal);
    io.if_set("ordered", v.ordered);
    io.at_end("by_scheduler", v.by_scheduler);
  }
};
// Why the node leaves, for its own job result: "stopped by SIGTERM".
std::string why_it_left(const NodeLeaves& message);
// How long a node may take to gather its details of the first failure. The end of a job waits so long for a node that
// has lost its session before it could send them.
inline constexpr std::int64_t kDetailsMs = 2000;

// The node has the job result, and waits for Dismiss.
struct JobResultHeard {
  static constexpr FrameType kType = FrameType::kJobResultHeard;
  // Details of the worker that failed first, if it ran on this node, for every node's report. The coordinator does not
  // read them. At most limits::kAgentDetailsBytes.
  std::string details = {};
  bool operator==(const JobResultHeard&) const = default;
  static void fields(auto& io, auto& v) { io.if_set("details", v.details, bounds::kDetails); }
};
// The node has the PrepareRound of this round, and will tell every later coordinator of the round. It is sent where the
// coordinator counts votes.
struct RoundHeard {
  static constexpr FrameType kType = FrameType::kRoundHeard;
  RoundNumber round = 0;
  bool operator==(const RoundHeard&) const = default;
  static void fields(auto& io, auto& v) { io.stamped("round", v.round); }
};
// How far the node's workers are, whatever their number. It is sent when there is something new, at most each
// limits::kProgressReportMs.
struct NodeProgress {
  static constexpr FrameType kType = FrameType::kNodeProgress;
  RoundNumber round = 0;
  ProgressOfRank newest = {};  // of the rank that gave the last sign of progress
  ProgressOfRank oldest = {};  // of the rank that has given none for the longest time, of those that ever gave one
  int speakers = 0;            // how many ranks ever gave one
  bool operator==(const NodeProgress&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    each(io, "newest", v.newest, "oldest", v.oldest, "speakers", v.speakers);
  }
};
// The answer to StacksWanted: what the node's workers are doing (docs/stacks.md).
struct NodeStacks {
  static constexpr FrameType kType = FrameType::kNodeStacks;
  std::uint64_t collection = 0;
  std::string groups = {};   // stacks::text_of(); empty: `problem` says why there are none
  std::string problem = {};  // a clause
  bool operator==(const NodeStacks&) const = default;
  static void fields(auto& io, auto& v) {
    io("collection", v.collection);
    io("groups", v.groups, at_most(stacks::kMostBytesOfNode));
    io("problem", v.problem, bounds::kName);
  }
};
// What a node sees of a hang without being asked. It is sent when a fact begins or ends to hold, and now and then while
// one holds or its workers' disks move.
struct HangSigns {
  static constexpr FrameType kType = FrameType::kHangSigns;
  RoundNumber round = 0;
  HangFacts facts = {};
  bool disks_move = false;  // its workers together read or write 1 MB/s or more
  bool operator==(const HangSigns&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    each(io, "facts", v.facts, "disks_move", v.disks_move);
  }
};
// The answer to CollectEvidence.
struct NodeEvidence {
  static constexpr FrameType kType = FrameType::kNodeEvidence;
  RoundNumber round = 0;
  std::uint32_t collection = 0;
  std::string facts = {};  // hang::NodeFacts, as bytes (hang_parts.h)
  bool operator==(const NodeEvidence&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("collection", v.collection);
    io("facts", v.facts, at_most(limits::kHangEvidenceBytes));
  }
};
// With --auto-tunning, in a job of several nodes: for the node of group rank 0, or from that one for all others. The
// coordinator passes it on as LoaderTold.
struct LoaderSays {
  static constexpr FrameType kType = FrameType::kLoaderSays;
  RoundNumber round = 0;
  tuning::LoaderWord word = {};
  bool operator==(const LoaderSays&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("word", v.word);
  }
};
// No alias of std::variant: what copies, moves and destroys the many alternatives is compiled once, in messages.cpp,
// and not in every source that has a message: it was a third of the compilation. Events and effects do the same.
struct AgentMessage : std::variant<NodeJoins, StoreIsOpen, WorkerFailed, WorkersSucceeded, NodeCannotRun, NodeStopped,
                                   NodeLeaves, CheckDone, JobResultHeard, RoundHeard, NodeProgress, NodeStacks,
                                   HangSigns, NodeEvidence, LoaderSays> {
  using variant::variant;
  AgentMessage(const AgentMessage& other);
  AgentMessage(AgentMessage&& other) noexcept;
  AgentMessage& operator=(const AgentMessage& other);
  AgentMessage& operator=(AgentMessage&& other) noexcept;
  ~AgentMessage();
};
constexpr auto names_of(const AgentMessage&) {
  return std::array{"node-joins",    "store-is-open", "worker-failed", "workers-succeeded", "node-cannot-run",
                    "node-stopped",  "node-leaves",   "check-done",    "verdict-heard",     "round-heard",
                    "node-progress", "node-stacks",   "hang-signs",    "node-evidence",     "loader-says"};
}

// --- Coordinator to agent. -------------------------------------------------------------------------

struct PrepareRound {
  static constexpr FrameType kType = FrameType::kPrepareRound;
  RoundNumber round = 0;
  int restart_count = 0;
  int max_restarts = 0;
  NodePlace place = {};
  std::string reason = {};       // why there is another round after the first one, as a clause
  int losses = 0;                // how many nodes the job has lost so far
  std::uint64_t membership = 0;  // a digest of the round's members: the same on all its nodes
  bool charged = true;           // it follows a failure that --max-restarts counts
  // For the node that serves the round's store: the addresses that may connect to it, as NodeJoins::addresses; empty:
  // all may.
  std::string admits = {};
  Fence fence = {};              // the same on all nodes of the round
  Transferred transferred = {};  // what the node reports to a coordinator that takes the round over
  // The coordinator counts votes, and needs a quorum of these rounds to run this one: one of them is the last that ran.
  // Empty: it counts none, or no round has run.
  std::vector<Round> before = {};
  // The node rank of the node that hosts the coordinator; not set: it is on none of the round's nodes.
  std::optional<int> host_rank = {};
  // The processes that may host the coordinator when this one is lost, in the order in which they are to be asked.
  std::vector<NextLeader> next_leaders = {};
  // A refused connection to the coordinator's own peer port proves that its process has ended.
  bool refusal_is_proof = true;
  // No error file stops a round before its worker has ended: there was a false alarm.
  bool error_files_wait = false;
  // The first of HCCL's ports on all nodes of the round; 0: each node's own start.
  std::uint16_t training_port = 0;
  bool operator==(const PrepareRound&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    each(io, "restart_count", v.restart_count, "max_restarts", v.max_restarts, "place", v.place);
    io("reason", v.reason, bounds::kText);
    each(io, "losses", v.losses, "membership", v.membership, "charged", v.charged);
    io("admits", v.admits, at_most(limits::kAgentAdmittedBytes));
    io("fence", v.fence);
    io("carried", v.transferred);
    io("before", v.before, at_most(limits::kLastRounds));
    io("host_rank", v.host_rank);
    io("successors", v.next_leaders, at_most(limits::kNextLeaders));
    io("refusal_is_proof", v.refusal_is_proof);
    io.if_set("error_files_wait", v.error_files_wait);
    io.at_end("training_port", v.training_port);
  }
};
// One phase of the check before training; answered by CheckDone.
struct RunCheck {
  static constexpr FrameType kType = FrameType::kRunCheck;
  RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string order;  // for this node, in the check plan's own form
  bool operator==(const RunCheck&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("phase", v.phase);
    io("order", v.order, bounds::kCheck);
  }
};
struct RunWorkers {
  static constexpr FrameType kType = FrameType::kRunWorkers;
  RoundNumber round = 0;
  StoreEndpoint store;
  bool operator==(const RunWorkers&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("store", v.store);
  }
};
struct StopWorkers {
  static constexpr FrameType kType = FrameType::kStopWorkers;
  RoundNumber round = 0;
  bool hangs = false;  // the round hangs: no worker is waited for as long as it might save its state
  // With `hangs`: not all stacks of this node's workers could be read. They get SIGABRT first, by which Python tells
  // its stack itself (PYTHONFAULTHANDLER).
  bool aborts = false;
  // With `hangs`: recorders of the round's ranks are missing, and can be got by /exception_dump in the round's store.
  // No node signals its workers before they have had the time to dump.
  bool dumps = false;
  bool operator==(const StopWorkers&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io.if_set("hangs", v.hangs);
    io.if_set("aborts", v.aborts);
    io.if_set("dumps", v.dumps);
  }
};
struct EndJob {
  static constexpr FrameType kType = FrameType::kEndJob;
  JobResult job_result;
  bool operator==(const EndJob&) const = default;
  static void fields(auto& io, auto& v) { io("verdict", v.job_result); }
};
// Every node has the job result: this node may end.
struct Dismiss {
  static constexpr FrameType kType = FrameType::kDismiss;
  std::string details = {};  // those of a JobResultHeard, if one had any
  bool operator==(const Dismiss&) const = default;
  static void fields(auto& io, auto& v) { io("details", v.details, bounds::kDetails); }
};
// The node is to answer with a keep-alive: another node claims the same rank.
struct AreYouThere {
  static constexpr FrameType kType = FrameType::kAreYouThere;
  bool operator==(const AreYouThere&) const = default;
  static void fields(auto&, auto&) {}
};
// An operator has ordered this node to leave the job: it does as if it had got SIGTERM.
struct LeaveJob {
  static constexpr FrameType kType = FrameType::kLeaveJob;
  std::string from = {};  // the operator's address, if it is known
  bool operator==(const LeaveJob&) const = default;
  static void fields(auto& io, auto& v) { io("from", v.from, bounds::kName); }
};
// What a node that is in no round waits for. It is sent now and then if the wait takes longer than a moment. It is for
// the node's user only.
struct Awaiting {
  static constexpr FrameType kType = FrameType::kAwaiting;
  int here = 0;             // how many nodes are ready for the next round
  int least = 0;            // the minimum of nodes
  int most = 0;             // the maximum of nodes
  std::int64_t for_ms = 0;  // how long the job has waited for nodes; 0: it does not
  // In how many milliseconds the round begins, if the nodes are enough, or else the wait fails.
  std::optional<std::int64_t> left_ms = {};
  std::string what = {};  // what the node waits for instead of nodes, as a clause; empty: for nodes
  // Which nodes are missing: "node 1 (10.0.0.3) was lost: its connection was reset"; empty: none is.
  std::string because = {};
  std::int64_t because_ms = 0;  // how long ago the last of them was lost
  bool operator==(const Awaiting&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "here", v.here, "least", v.least, "most", v.most, "for_ms", v.for_ms, "left_ms", v.left_ms);
    io("what", v.what, bounds::kText);
    io("because", v.because, bounds::kText);
    io("because_ms", v.because_ms);
  }
};
// The node is not let into the job, and the session ends. With `retry_ms` it may try again after so many milliseconds;
// without it elastic-run ends on that node, for `reason`.
struct Rejected {
  static constexpr FrameType kType = FrameType::kRejected;
  enum class Why : std::uint8_t {
    kRoundWentOn,  // its workers belong to a round that is over: they must be gone before it joins again
    kJobEnding,    // the job of this name has its result; a new one can begin when all nodes have got it
    kTermsDiffer,  // it was started with other --nnodes, --node_unit or --max-restarts
    kRankTaken,    // another node, which is alive, has the claimed rank
    kQuarantined,  // it was lost too often
    kEvicted,      // the check before training found it unhealthy, or it was evicted for a hang
    kTooMany,      // the job has as many nodes as a coordinator serves
  };
  Why why = Why::kJobEnding;
  std::string reason;
  std::optional<std::int64_t> retry_ms;
  bool operator==(const Rejected&) const = default;
  static void fields(auto& io, auto& v) {
    io("why", v.why);
    io("reason", v.reason, bounds::kText);
    io("retry_ms", v.retry_ms);
  }
};
constexpr auto names_of(Rejected::Why) {
  return std::array{"round-went-on", "job-ending", "terms-differ", "rank-taken", "kept-out", "excluded", "too-many"};
}
// To a node that is not in the round that is prepared: its voter state may have to tell of that round. Answered by
// RoundHeard.
struct NextRound {
  static constexpr FrameType kType = FrameType::kNextRound;
  Round next = {};
  std::vector<Round> before = {};  // as in PrepareRound
  bool operator==(const NextRound&) const = default;
  static void fields(auto& io, auto& v) {
    io("next", v.next);
    io("before", v.before, at_most(limits::kLastRounds));
  }
};
// This coordinator never acts again: the votes of its voters are free. The session ends.
struct Resigned {
  static constexpr FrameType kType = FrameType::kResigned;
  std::string why = {};               // as a clause
  bool transfers_leadership = false;  // its node leaves, and another one is to be elected in its place
  bool operator==(const Resigned&) const = default;
  static void fields(auto& io, auto& v) {
    io("why", v.why, bounds::kText);
    io("hands_over", v.transfers_leadership);
  }
};
// The node is to tell what its workers are doing; answered by NodeStacks.
struct StacksWanted {
  static constexpr FrameType kType = FrameType::kStacksWanted;
  std::uint64_t collection = 0;  // the answer has the same number
  bool operator==(const StacksWanted&) const = default;
  static void fields(auto& io, auto& v) { io("collection", v.collection); }
};
// The job makes no progress: the node is to read what its ranks do, and to answer with NodeEvidence. An older
// collection is over.
struct CollectEvidence {
  static constexpr FrameType kType = FrameType::kCollectEvidence;
  RoundNumber round = 0;
  std::uint32_t collection = 0;
  std::int64_t silent_ms = 0;  // since the last progress, or since the round began
  std::int64_t limit_ms = 0;   // for which that is no hang
  std::int64_t within_ms = 0;  // an answer after so many milliseconds comes too late
  bool operator==(const CollectEvidence&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("collection", v.collection);
    io("silent_ms", v.silent_ms, bounds::kMs);
    io("limit_ms", v.limit_ms, bounds::kMs);
    io("within_ms", v.within_ms, bounds::kMs);
  }
};
// Every node tells its user that the job hangs, that no hang can be noticed, or what is tried before the verdict.
struct HangTold {
  static constexpr FrameType kType = FrameType::kHangTold;
  enum class What : std::uint8_t {
    kVerdict,    // the job hangs, and this is why
    kNotArmed,   // no progress is seen: nothing is watched. Once in a job
    kContinues,  // workers are stopped, and are sent SIGCONT before there is a verdict. Once in a round
  };
  RoundNumber round = 0;
  What what = What::kVerdict;
  std::int64_t silent_ms = 0;
  std::string text = {};    // lines for the screen; with kContinues a clause that names the stopped ranks
  std::string report = {};  // of a verdict: JSON (docs/hangs.md)
  bool is_stopped = false;  // with kContinues: this node sends its workers SIGCONT
  bool operator==(const HangTold&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("what", v.what);
    io("silent_ms", v.silent_ms, bounds::kMs);
    io("text", v.text, bounds::kText);
    io("report", v.report, at_most(limits::kHangReportBytes));
    io("is_stopped", v.is_stopped);
  }
};
constexpr auto names_of(HangTold::What) { return std::array{"verdict", "not-armed", "continues"}; }
// The job makes progress again.
struct HangOver {
  static constexpr FrameType kType = FrameType::kHangOver;
  enum class Why : std::uint8_t {
    kRecovered,  // after the verdict
    kWithdrawn,  // while evidence was collected: there was no hang, and the collection is over
  };
  RoundNumber round = 0;
  Why why = Why::kRecovered;
  std::int64_t after_ms = 0;  // for how long there was no progress
  bool operator==(const HangOver&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("why", v.why);
    io("after_ms", v.after_ms, bounds::kMs);
  }
};
constexpr auto names_of(HangOver::Why) { return std::array{"recovered", "withdrawn"}; }
// Takes the place of PrepareRound::transferred.
struct KeepState {
  static constexpr FrameType kType = FrameType::kKeepState;
  RoundNumber round = 0;
  Transferred transferred = {};
  bool operator==(const KeepState&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("carried", v.transferred);
  }
};
// What another node of the round has said of its loaders.
struct LoaderTold {
  static constexpr FrameType kType = FrameType::kLoaderTold;
  RoundNumber round = 0;
  int node_rank = 0;  // of that node
  tuning::LoaderWord word = {};
  bool operator==(const LoaderTold&) const = default;
  static void fields(auto& io, auto& v) {
    io.stamped("round", v.round);
    io("node_rank", v.node_rank);
    io("word", v.word);
  }
};
struct CoordinatorMessage : std::variant<PrepareRound, RunWorkers, StopWorkers, EndJob, RunCheck, Dismiss, Rejected,
                                         AreYouThere, Awaiting, LeaveJob, Resigned, NextRound, StacksWanted,
                                         CollectEvidence, HangTold, HangOver, KeepState, LoaderTold> {
  using variant::variant;
  CoordinatorMessage(const CoordinatorMessage& other);
  CoordinatorMessage(CoordinatorMessage&& other) noexcept;
  CoordinatorMessage& operator=(const CoordinatorMessage& other);
  CoordinatorMessage& operator=(CoordinatorMessage&& other) noexcept;
  ~CoordinatorMessage();
};
constexpr auto names_of(const CoordinatorMessage&) {
  return std::array{"prepare-round", "run-workers",      "stop-workers", "end-job",   "run-check",  "dismiss",
                    "rejected",      "are-you-there",    "awaiting",     "leave-job", "resigned",   "next-round",
                    "stacks-wanted", "collect-evidence", "hang-told",    "hang-over", "keep-state", "loader-told"};
}

}  // namespace elastic::protocol
