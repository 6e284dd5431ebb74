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

// A node as its coordinator knows it: one session, counted up from 0. An agent that comes back has a
// new one.
using NodeId = std::uint32_t;

// An agent, by a random number that it makes once; the same over all its sessions.
using AgentId = std::uint64_t;

// One membership of the job, counted from 0.
using RoundNumber = std::uint32_t;

// Which coordinator speaks: a later one has a higher term.
using Term = std::uint32_t;

// Which start of the job is meant: a new random number each time it is started afresh.
using Incarnation = std::uint64_t;

// What a restart replaces. Only `kJob` is produced today.
enum class RestartScope : std::uint8_t { kRank, kNode, kJob };

// Where the workers of a round find their store.
struct StoreEndpoint {
  std::string address;
  std::uint16_t port = 0;
  bool operator==(const StoreEndpoint&) const = default;
};

// What is known about how a worker failed, the likeliest cause of others' failures first.
enum class FailureKind : std::uint8_t { kKilled, kTraceback, kOther, kCommunication };

// One worker that ended otherwise than by exit code 0, or could not be started.
struct WorkerFailure {
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  std::int64_t pid = 0;
  ExitStatus exit;
  std::int64_t wall_ms = 0;    // Unix time in milliseconds, by the node's clock
  bool stopped_by_us = false;  // it ended after its group had been told to
  FailureKind kind = FailureKind::kOther;
  std::string host = {};  // of the node; empty: the reader's own

  // It says that no new start will do better (kDoNotRequeue). What was told to end says nothing by how it does.
  bool is_final() const { return exit.is_final() && !stopped_by_us; }
  // "rank 5 (node 1, local rank 1, pid 4711) was killed by SIGKILL"
  std::string text() const;
  bool operator==(const WorkerFailure&) const = default;
};

// A failure that the program's files alone may be to blame for, so that the next attempt may fail of it again.
struct Crash {
  enum class Kind : std::uint8_t { kImport, kSyntax, kMissingFile };
  Kind kind = Kind::kImport;
  std::uint64_t digest = 0;  // of the exception's type, text, file and line: alike where all of them are
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

// Why the job is over, for every node's report and exit status.
struct Verdict {
  using Outcome = elastic::Outcome;
  Outcome outcome = Outcome::kSucceeded;
  std::string reason = {};  // a sentence; empty on success
  RoundNumber round = 0;
  int restarts_used = 0;
  int signal = 0;                            // kStopped: the signal that asked for it
  std::vector<WorkerFailure> failures = {};  // of the last round, the cause first
  // Processes of this node that did not end even when killed; each node fills it in for its own report.
  std::string left_behind = {};
  // The last two attempts failed alike, as further ones would. Since 1.2.
  bool is_deterministic = false;
  // This node was left out by the check before training. Only it knows: not sent, not recorded.
  bool is_unfit = false;
  bool operator==(const Verdict&) const = default;
};

// What every node of a job must have been started with alike.
struct JobTerms {
  int min_nodes = 1;
  int max_nodes = 1;
  int node_unit = 1;
  int max_restarts = 0;
  bool operator==(const JobTerms&) const = default;
};

// How the coordinator is to run the job: those of the first node that joins hold. Times in milliseconds.
struct JobRules {
  enum class ScaleUp : std::uint8_t { kNow, kAfter, kOnRestart, kNever };
  std::int64_t last_call_ms = 30'000;
  std::int64_t join_timeout_ms = 600'000;
  std::int64_t replacement_grace_ms = 0;
  ScaleUp scale_up = ScaleUp::kAfter;
  std::int64_t scale_up_after_ms = 1000;
  int node_losses = 3;  // of one node within the window, then it is kept out; 0 or less: any number
  std::int64_t loss_window_ms = 600'000;
  std::int64_t keep_out_ms = 300'000;
  int job_losses = 0;  // 0: ten times max_nodes; negative: any number
  // How long a later round waits for the minimum; none: join_timeout_ms. Since 1.2.
  std::optional<std::int64_t> replacement_wait_ms = {};
  // After two attempts that failed of the same Crash. Since 1.2.
  enum class CrashLoop : std::uint8_t { kStop, kRestart };
  CrashLoop crash_loop = CrashLoop::kStop;
  bool operator==(const JobRules&) const = default;
};

// Whether nodes are checked before workers start, and what follows from it. As JobRules: those of the first node hold.
struct CheckRules {
  enum class When : std::uint8_t {
    kNever,
    kFirst,    // a node before its first round
    kSuspect,  // and one again on which a worker has failed first
    kAlways,   // all before each round
  };
  When when = When::kNever;
  bool excludes_stragglers = false;
  bool only = false;          // the job ends with the check: no worker runs
  bool measures_all = false;  // an all-gather of all nodes that are fit, too
  bool operator==(const CheckRules&) const = default;
};

// What an agent knows of the job when it (re)joins: from these facts of all, a coordinator that has lost
// its memory rebuilds the job.
struct AgentFacts {
  enum class Activity : std::uint8_t { kIdle, kPreparing, kRunning, kSucceeded, kStopping };
  Incarnation incarnation = 0;  // 0: it has been in no round yet, and the rest means nothing
  Term term = 0;                // the highest that it has heard of
  RoundNumber round = 0;        // the last that it was in
  Activity activity = Activity::kIdle;
  NodePlace place = {};
  int restart_count = 0;
  int losses = 0;                            // of nodes, in the job so far
  std::uint64_t membership = 0;              // the round's digest (PrepareRound)
  std::vector<WorkerFailure> failures = {};  // of the round so far
  std::optional<Verdict> verdict = {};       // heard already
  bool operator==(const AgentFacts&) const = default;
};

// --- Agent to coordinator. -------------------------------------------------------------------------

// The first message of each session.
struct NodeJoins {
  int local_world_size = 0;
  std::string role = {};
  AgentId agent = 0;
  std::string address = {};           // how the node calls itself: orders newcomers, names it to people
  std::optional<int> node_rank = {};  // claimed by its user
  bool hosts_coordinator = false;     // the job ends with it
  JobTerms terms = {};
  JobRules rules = {};
  AgentFacts facts = {};
  std::string addresses = {};  // numeric, of its interfaces, with spaces between them
  CheckRules check = {};
  std::uint32_t session = 0;  // so many sessions the agent has opened before, if it counts them
  std::string group = {};     // of nodes that are near each other, a rack: the check pairs by it
  bool operator==(const NodeJoins&) const = default;
};
// The answer to RunCheck: what the check of this phase has found, in the form that the check plan knows.
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
  // What the first of them was, where it may come again; empty as well where nobody has looked. Since 1.2.
  std::optional<Crash> crash = {};
  bool operator==(const NodeStopped&) const = default;
};
// The node was told by a signal to end (it stops its workers), or, with signal 0, has succeeded and waited
// long enough for the others. With SIGKILL its outer process was killed, and it hosts the coordinator.
struct NodeLeaves {
  int signal = 0;
  bool operator==(const NodeLeaves&) const = default;
};
// How long a node may gather its details of the first failure, and the end of a job waits for one that was about to
// tell them.
inline constexpr std::int64_t kDetailsMs = 2000;

// The verdict has arrived and is kept until the coordinator says Dismiss.
struct VerdictHeard {
  // What is known of the worker that failed first, where that was one of ours: for every node's report. Opaque to
  // coordinator and agents, at most limits::kAgentDetailsBytes.
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
  int losses = 0;                // of nodes, in the job so far
  std::uint64_t membership = 0;  // a digest of who is in the round: the same on all its nodes
  bool charged = true;           // it came of a failure that --max-restarts counts
  // For the node that serves the round's store: who may connect to it, as NodeJoins::addresses; empty: everybody.
  std::string admits = {};
  bool operator==(const PrepareRound&) const = default;
};
// One phase of the check before training; answered by CheckDone.
struct RunCheck {
  RoundNumber round = 0;
  std::uint32_t phase = 0;
  std::string order;  // for this node, in the form that the check plan knows
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
// Every node has heard the verdict: go.
struct Dismiss {
  std::string details = {};  // what a VerdictHeard has brought, if one did
  bool operator==(const Dismiss&) const = default;
};
// Give a sign of life: another node claims the same rank.
struct AreYouThere {
  bool operator==(const AreYouThere&) const = default;
};
// What a node that has no part in a round waits for: now and then, where that takes longer than a moment. Only for
// its user, and only for agents of version 1.1 and later.
struct Awaiting {
  int here = 0;             // nodes that are ready for the next round,
  int least = 0;            // of so many at least
  int most = 0;             // and at most
  std::int64_t for_ms = 0;  // that the job has waited for nodes; 0: it does not
  // Until the round begins with those who are here, where they are enough, or else the wait fails.
  std::optional<std::int64_t> left_ms = {};
  std::string what = {};  // what it waits for instead of nodes, as a clause; empty: for nodes
  // Since 1.2: who went, and how: "node 1 (10.0.0.3) was lost: its connection was reset"; empty: nobody has.
  std::string because = {};
  std::int64_t because_ms = 0;  // so long ago, the last of them
  bool operator==(const Awaiting&) const = default;
};
// The node is not taken into the job, and the session ends. With `retry_ms` it may come again after so
// long; without, its job ends for `reason`.
struct Rejected {
  enum class Why : std::uint8_t {
    kRoundWentOn,     // its workers belong to a round that is over: they must be gone before it joins again
    kJobEnding,       // the job of this name has its verdict; another can begin when all have heard it
    kTermsDiffer,     // it was started with other --nnodes, --node_unit or --max-restarts
    kRankTaken,       // another living node has the claimed rank
    kKeptOut,         // it was lost too often
    kExcluded,        // the check before training found it unfit
    kOldCoordinator,  // we are not the job's coordinator any more
    kTooMany,         // more nodes than a coordinator serves
  };
  Why why = Why::kJobEnding;
  std::string reason;
  std::optional<std::int64_t> retry_ms;
  bool operator==(const Rejected&) const = default;
};
using CoordinatorMessage =
    std::variant<PrepareRound, RunWorkers, StopWorkers, EndJob, RunCheck, Dismiss, Rejected, AreYouThere, Awaiting>;

}  // namespace elastic::protocol
