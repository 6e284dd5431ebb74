#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/base/exit_status.h"
#include "src/base/outcome.h"

// What agents and the coordinator tell each other, as plain values. Where both are in one process they
// are handed over as they are; between nodes sessions carry them (session.h).
namespace elastic::protocol {

// The number of a node's session with the coordinator, counted up from 0. An agent that reconnects gets a new one.
using NodeId = std::uint32_t;

// A random number that an agent chooses once and keeps over all its sessions.
using AgentId = std::uint64_t;

// The number of a round (one membership of the job), counted from 0.
using RoundNumber = std::uint32_t;

// The number of a coordinator: each later coordinator of a job has a higher term.
using Term = std::uint32_t;

// A random number that is chosen each time a job is started afresh.
using Incarnation = std::uint64_t;

// What a restart replaces. Only `kJob` is sent today.
enum class RestartScope : std::uint8_t { kRank, kNode, kJob };

// Where the workers of a round find their store.
struct StoreEndpoint {
  std::string address;
  std::uint16_t port = 0;
  bool operator==(const StoreEndpoint&) const = default;
};

// How a worker failed, in the order in which it is likely to be the cause of other workers' failures.
enum class FailureKind : std::uint8_t { kKilled, kTraceback, kOther, kCommunication };

// One worker that ended otherwise than by exit code 0, or could not be started.
struct WorkerFailure {
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  std::int64_t pid = 0;
  ExitStatus exit;
  std::int64_t wall_ms = 0;    // Unix time in milliseconds, by the node's clock
  bool stopped_by_us = false;  // it ended after elastic-run had told it to
  FailureKind kind = FailureKind::kOther;
  std::string host = {};  // of the node; empty: the reader's own

  // Its exit code says that the job is not to be started again (kDoNotRequeue). That of a worker that was told to end
  // says nothing.
  bool is_final() const { return exit.is_final() && !stopped_by_us; }
  // "rank 5 (node 1, local rank 1, pid 4711) was killed by SIGKILL"
  std::string text() const;
  bool operator==(const WorkerFailure&) const = default;
};

// A failure that may come from the program's files alone, so that a restart may fail with it again.
struct Crash {
  enum class Kind : std::uint8_t { kImport, kSyntax, kMissingFile };
  Kind kind = Kind::kImport;
  std::uint64_t digest = 0;  // of the exception's type, text, file and line
  bool operator==(const Crash&) const = default;
};

// A node's place in a round: the sizes and bases from which each worker's ranks follow.
struct NodePlace {
  int node_rank = 0;
  int node_count = 0;
  int base_rank = 0;
  int world_size = 0;
  int base_role_rank = 0;
  int role_world_size = 0;
  bool operator==(const NodePlace&) const = default;
};

// How and why the job ended, for every node's report and exit status.
struct Verdict {
  using Outcome = elastic::Outcome;
  Outcome outcome = Outcome::kSucceeded;
  std::string reason = {};  // a sentence; empty on success
  RoundNumber round = 0;
  int restarts_used = 0;
  int signal = 0;                            // kStopped: the signal that asked for it
  std::vector<WorkerFailure> failures = {};  // of the last round, the cause first
  // Processes of this node that did not end even when killed. Each node fills it in for its own report.
  std::string left_behind = {};
  // The last two attempts failed alike, as further ones would. Since 1.2.
  bool is_deterministic = false;
  // The check before training has excluded this node, which sets it for its own report: it is neither sent nor
  // recorded.
  bool is_unfit = false;
  bool operator==(const Verdict&) const = default;
};

// The options that must be the same on all nodes of a job.
struct JobTerms {
  int min_nodes = 1;
  int max_nodes = 1;
  int node_unit = 1;
  int max_restarts = 0;
  // "--nnodes=2:3", or "--nnodes=2".
  std::string nnodes_text() const;
  bool operator==(const JobTerms&) const = default;
};

// How the coordinator is to run the job. The rules of the first node that joins hold. Times are milliseconds.
struct JobRules {
  enum class ScaleUp : std::uint8_t { kNow, kAfter, kOnRestart, kNever };
  std::int64_t last_call_ms = 30'000;
  std::int64_t join_timeout_ms = 600'000;
  std::int64_t replacement_grace_ms = 0;
  ScaleUp scale_up = ScaleUp::kAfter;
  std::int64_t scale_up_after_ms = 1000;
  int node_losses = 3;  // so many losses within the window keep a node out; 0 or less: no number does
  std::int64_t loss_window_ms = 600'000;
  std::int64_t keep_out_ms = 300'000;
  int job_losses = 0;  // 0: ten times max_nodes; negative: any number
  // How long a later round waits for the minimum of nodes; nothing: join_timeout_ms. Since 1.2.
  std::optional<std::int64_t> replacement_wait_ms = {};
  // What follows when two attempts in a row fail with the same Crash. Since 1.2.
  enum class CrashLoop : std::uint8_t { kStop, kRestart };
  CrashLoop crash_loop = CrashLoop::kStop;
  bool operator==(const JobRules&) const = default;
};

// Whether nodes are checked before workers start, and what follows from it. The rules of the first node that joins
// hold.
struct CheckRules {
  enum class When : std::uint8_t {
    kNever,
    kFirst,    // each node before its first round
    kSuspect,  // the same, and a node again after a worker has failed first on it
    kAlways,   // all nodes before each round
  };
  When when = When::kNever;
  bool excludes_stragglers = false;
  bool only = false;          // the job ends with the check: no worker runs
  bool measures_all = false;  // all fit nodes together measure an all-gather, too
  bool operator==(const CheckRules&) const = default;
};

// What an agent knows of the job when it joins. A coordinator that has just started takes the job over from these facts
// of all agents.
struct AgentFacts {
  enum class Activity : std::uint8_t { kIdle, kPreparing, kRunning, kSucceeded, kStopping };
  Incarnation incarnation = 0;  // 0: it has been in no round yet, and the other members mean nothing
  Term term = 0;                // the highest term that it has met
  RoundNumber round = 0;        // the last round that it was in
  Activity activity = Activity::kIdle;
  NodePlace place = {};
  int restart_count = 0;
  int losses = 0;                            // how many nodes the job has lost so far
  std::uint64_t membership = 0;              // the round's digest (PrepareRound)
  std::vector<WorkerFailure> failures = {};  // of the round so far
  std::optional<Verdict> verdict = {};       // the verdict, if the agent has got it already
  bool operator==(const AgentFacts&) const = default;
};

// --- Agent to coordinator. -------------------------------------------------------------------------

// The first message of each session.
struct NodeJoins {
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
  CheckRules check = {};
  std::uint32_t session = 0;  // how many sessions the agent has opened before, if it counts them
  std::string group = {};     // nodes of one group are near each other, as in a rack: the check pairs by it
  bool operator==(const NodeJoins&) const = default;
};
// The answer to RunCheck: the node's result of this phase, in the check plan's own form.
struct CheckDone {
  RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string result;
  bool operator==(const CheckDone&) const = default;
};
struct StoreIsOpen {
  RoundNumber round = 0;
  StoreEndpoint endpoint;
  bool operator==(const StoreIsOpen&) const = default;
};
struct WorkerFailed {
  RoundNumber round = 0;
  WorkerFailure failure;
  bool operator==(const WorkerFailed&) const = default;
};
struct WorkersSucceeded {
  RoundNumber round = 0;
  bool operator==(const WorkersSucceeded&) const = default;
};
// The node cannot run this round's workers at all (a program that cannot be executed, a port in use).
struct NodeCannotRun {
  RoundNumber round = 0;
  std::string reason;
  bool operator==(const NodeCannotRun&) const = default;
};
// No process of the round is left on the node.
struct NodeStopped {
  RoundNumber round = 0;
  std::vector<WorkerFailure> failures;
  // The crash of the first failure, if it is one that may repeat and the node has found out. Since 1.2.
  std::optional<Crash> crash = {};
  bool operator==(const NodeStopped&) const = default;
};
// The node got a signal to end, and stops its workers. With signal 0 its workers have succeeded, and its exit barrier
// has timed out. With SIGKILL its outer process was killed, and it hosts the coordinator.
struct NodeLeaves {
  int signal = 0;
  bool operator==(const NodeLeaves&) const = default;
};
// How long a node may take to gather its details of the first failure. The end of a job waits so long for a node that
// has lost its session before it could send them.
inline constexpr std::int64_t kDetailsMs = 2000;

// The node has the verdict, and waits for Dismiss.
struct VerdictHeard {
  // Details of the worker that failed first, if it ran on this node, for every node's report. The coordinator does not
  // read them. At most limits::kAgentDetailsBytes.
  std::string details = {};
  bool operator==(const VerdictHeard&) const = default;
};
using AgentMessage = std::variant<NodeJoins, StoreIsOpen, WorkerFailed, WorkersSucceeded, NodeCannotRun, NodeStopped,
                                  NodeLeaves, CheckDone, VerdictHeard>;

// --- Coordinator to agent. -------------------------------------------------------------------------

struct PrepareRound {
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
  bool operator==(const PrepareRound&) const = default;
};
// One phase of the check before training; answered by CheckDone.
struct RunCheck {
  RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string order;  // for this node, in the check plan's own form
  bool operator==(const RunCheck&) const = default;
};
struct RunWorkers {
  RoundNumber round = 0;
  StoreEndpoint store;
  bool operator==(const RunWorkers&) const = default;
};
struct StopWorkers {
  RoundNumber round = 0;
  RestartScope scope = RestartScope::kJob;
  bool operator==(const StopWorkers&) const = default;
};
struct EndJob {
  Verdict verdict;
  bool operator==(const EndJob&) const = default;
};
// Every node has the verdict: this node may end.
struct Dismiss {
  std::string details = {};  // those of a VerdictHeard, if one had any
  bool operator==(const Dismiss&) const = default;
};
// The node is to answer with a keep-alive: another node claims the same rank.
struct AreYouThere {
  bool operator==(const AreYouThere&) const = default;
};
// What a node that is in no round waits for. It is sent now and then if the wait takes longer than a moment. It is for
// the node's user only, and for agents of version 1.1 and later.
struct Awaiting {
  int here = 0;             // how many nodes are ready for the next round
  int least = 0;            // the minimum of nodes
  int most = 0;             // the maximum of nodes
  std::int64_t for_ms = 0;  // how long the job has waited for nodes; 0: it does not
  // In how many milliseconds the round begins, if the nodes are enough, or else the wait fails.
  std::optional<std::int64_t> left_ms = {};
  std::string what = {};  // what the node waits for instead of nodes, as a clause; empty: for nodes
  // Since 1.2: which nodes are missing: "node 1 (10.0.0.3) was lost: its connection was reset"; empty: none is.
  std::string because = {};
  std::int64_t because_ms = 0;  // how long ago the last of them was lost
  bool operator==(const Awaiting&) const = default;
};
// The node is not let into the job, and the session ends. With `retry_ms` it may try again after so many milliseconds;
// without it elastic-run ends on that node, for `reason`.
struct Rejected {
  enum class Why : std::uint8_t {
    kRoundWentOn,     // its workers belong to a round that is over: they must be gone before it joins again
    kJobEnding,       // the job of this name has its verdict; a new one can begin when all nodes have got it
    kTermsDiffer,     // it was started with other --nnodes, --node_unit or --max-restarts
    kRankTaken,       // another node, which is alive, has the claimed rank
    kKeptOut,         // it was lost too often
    kExcluded,        // the check before training found it unfit
    kOldCoordinator,  // another coordinator has taken the job over
    kTooMany,         // the job has as many nodes as a coordinator serves
  };
  Why why = Why::kJobEnding;
  std::string reason;
  std::optional<std::int64_t> retry_ms;
  bool operator==(const Rejected&) const = default;
};
using CoordinatorMessage =
    std::variant<PrepareRound, RunWorkers, StopWorkers, EndJob, RunCheck, Dismiss, Rejected, AreYouThere, Awaiting>;

}  // namespace elastic::protocol
