#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "health/hang/section_limits.h"
#include "health/progress/kinds.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/exit_status.h"
#include "src/base/fields.h"
#include "src/base/limits.h"
#include "src/base/outcome.h"
#include "src/base/worker_start.h"

// The values that messages between agents and the coordinator consist of.
namespace elastic::protocol {

namespace bounds {
// Bounds of texts: a sender cuts those that are longer.
inline constexpr Bounds kName = at_most(limits::kAgentNameBytes);
inline constexpr Bounds kText = at_most(limits::kAgentTextBytes);
inline constexpr Bounds kCheck = at_most(limits::kAgentCheckBytes);
inline constexpr Bounds kDetails = at_most(limits::kAgentDetailsBytes);
inline constexpr Bounds kFailures = at_most(limits::kAgentFailures);
// Ranges of numbers in a recording. Numbers that a coordinator checks itself have the range of their type, since it may
// have received any. Those that it calculates with unchecked have a smaller one, so that no recording makes it
// overflow.
inline constexpr Bounds kMs = {0, 1LL << 53};
inline constexpr Bounds kSignedMs = {-(1LL << 53), 1LL << 53};
inline constexpr Bounds kCount = {0, limits::kMaxRestarts};
inline constexpr Bounds kClaims = {0, std::numeric_limits<int>::max() - 1};
}  // namespace bounds

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

// Where the workers of a round find their store.
struct StoreEndpoint {
  std::string address;
  std::uint16_t port = 0;
  bool operator==(const StoreEndpoint&) const = default;
  static void fields(auto& io, auto& v) {
    io("address", v.address, bounds::kName);
    io("port", v.port);
  }
};

// TCP ports in a row.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool operator==(const PortRange&) const = default;
  static void fields(auto& io, auto& v) { each(io, "first", v.first, "last", v.last); }
};

// What a node knows of the ports at which HCCL may listen on it (rendezvous/membership/training_port.h).
struct TrainingPorts {
  std::uint16_t start = 0;             // the lowest port that its user allows
  std::vector<PortRange> in_use = {};  // ports from there on that no ports of HCCL may include, in ascending order
  bool operator==(const TrainingPorts&) const = default;
  static void fields(auto& io, auto& v) {
    io("start", v.start);
    io("in_use", v.in_use, at_most(limits::kPortRanges));
  }
};

// How a worker failed, in the order in which it is likely to be the cause of other workers' failures.
enum class FailureKind : std::uint8_t { kKilled, kTraceback, kOther, kCommunication };
constexpr auto names_of(FailureKind) { return std::array{"killed", "traceback", "other", "communication"}; }

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
  WorkerStart start = WorkerStart::kFresh;
  // When its error file was seen, if its node stopped the round for that before the worker had ended: Unix time in
  // milliseconds, by the node's clock; 0: it did not.
  std::int64_t error_file_ms = 0;

  // When it failed, as far as is known.
  std::int64_t failed_ms() const { return error_file_ms != 0 ? error_file_ms : wall_ms; }
  // Its exit code says that the job is not to be started again (kDoNotRequeue). That of a worker that was told to end
  // says nothing.
  bool is_final() const { return exit.is_final() && !stopped_by_us; }
  // "rank 5 (node 1, local rank 1, pid 4711) was killed by SIGKILL"
  std::string text() const;
  bool operator==(const WorkerFailure&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "rank", v.rank, "local_rank", v.local_rank, "node_rank", v.node_rank, "pid", v.pid, "exit", v.exit);
    each(io, "wall_ms", v.wall_ms, "stopped_by_us", v.stopped_by_us, "kind", v.kind);
    io("host", v.host, bounds::kName);
    io.if_set("start", v.start);
    io.if_set("error_file_ms", v.error_file_ms);
  }
};

// A failure that may come from the program's files alone, so that a restart may fail with it again.
struct Crash {
  enum class Kind : std::uint8_t { kImport, kSyntax, kMissingFile };
  Kind kind = Kind::kImport;
  std::uint64_t digest = 0;  // of the exception's type, text, file and line
  bool operator==(const Crash&) const = default;
  static void fields(auto& io, auto& v) { each(io, "kind", v.kind, "digest", v.digest); }
};
constexpr auto names_of(Crash::Kind) { return std::array{"import", "syntax", "missing-file"}; }

// A node's place in a round: the sizes and bases from which each worker's ranks follow.
struct NodePlace {
  int node_rank = 0;
  int node_count = 0;
  int base_rank = 0;
  int world_size = 0;
  int base_role_rank = 0;
  int role_world_size = 0;
  bool operator==(const NodePlace&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "node_rank", v.node_rank, "node_count", v.node_count, "base_rank", v.base_rank);
    each(io, "world_size", v.world_size, "base_role_rank", v.base_role_rank, "role_world_size", v.role_world_size);
  }
};

// How and why the job ended, for every node's report and exit status.
struct JobResult {
  using Outcome = elastic::Outcome;
  Outcome outcome = Outcome::kSucceeded;
  std::string reason = {};  // a sentence; empty on success
  RoundNumber round = 0;
  Term term = 0;  // of the coordinator that gave it; 0: none did
  int restarts_used = 0;
  int signal = 0;                            // kStopped: the signal that asked for it
  std::vector<WorkerFailure> failures = {};  // of the last round, the cause first
  // Processes of this node that did not end even when killed. Each node fills it in for its own report.
  std::string left_behind = {};
  // The last two attempts failed alike, as further ones would.
  bool is_deterministic = false;
  // The check before training has evicted this node, which sets it for its own report: it is neither sent nor recorded.
  bool is_unhealthy = false;
  bool operator==(const JobResult&) const = default;
  static void fields(auto& io, auto& v) {
    io("outcome", v.outcome);
    io("reason", v.reason, bounds::kText);
    io("round", v.round);
    io("term", v.term);
    io("restarts_used", v.restarts_used, bounds::kCount);
    io("signal", v.signal);
    io("failures", v.failures, bounds::kFailures);
    io("left_behind", v.left_behind, bounds::kText);
    io.if_set("is_deterministic", v.is_deterministic);
  }
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
  static void fields(auto& io, auto& v) {
    each(io, "min_nodes", v.min_nodes, "max_nodes", v.max_nodes, "node_unit", v.node_unit);
    io("max_restarts", v.max_restarts);
  }
};

// How the coordinator is to run the job. The rules of the first node that joins hold. Times are milliseconds.
struct JobRules {
  enum class ScaleUp : std::uint8_t { kNow, kAfter, kOnRestart, kNever };
  std::int64_t last_call_ms = 30'000;
  std::int64_t join_timeout_ms = 600'000;
  std::int64_t replacement_grace_ms = 0;
  ScaleUp scale_up = ScaleUp::kAfter;
  std::int64_t scale_up_after_ms = 1000;
  int node_losses = 3;  // so many losses within the window quarantine a node; 0 or less: no number does
  std::int64_t loss_window_ms = 600'000;
  std::int64_t quarantine_ms = 300'000;
  int job_losses = 0;  // 0: ten times max_nodes; negative: any number
  // How long a later round waits for the minimum of nodes; not set: join_timeout_ms.
  std::optional<std::int64_t> replacement_wait_ms = {};
  // What follows when two attempts in a row fail with the same Crash.
  enum class CrashLoop : std::uint8_t { kStop, kRestart };
  CrashLoop crash_loop = CrashLoop::kStop;
  // What a coordinator needs to act: nothing, or the votes of more than half of the last round (docs/failover.md); or
  // nothing, though votes were wanted, since no other node could be reached where it would lead.
  enum class Failover : std::uint8_t { kOff, kMajority, kUnreachable };
  Failover failover = Failover::kOff;
  // What follows with kMajority when the coordinator's own node gets SIGTERM. The leadership is transferred if the
  // other nodes are enough for a round, else the job ends; or the job ends; or the leadership is transferred in any
  // case.
  enum class OnLeave : std::uint8_t { kLeadershipTransfer, kEnd, kWait };
  OnLeave on_leave = OnLeave::kLeadershipTransfer;
  // With kMajority, what proves that the coordinator's process has ended when its host refuses connections to its port:
  // that refusal; or nothing, since a device on the way may refuse them, too.
  enum class Evidence : std::uint8_t { kRefusal, kNone };
  Evidence failover_evidence = Evidence::kRefusal;
  // Whether the job is watched for a hang, and what follows from one (docs/hangs.md).
  enum class Hang : std::uint8_t { kOff, kReport };
  Hang hang = Hang::kOff;
  std::optional<std::int64_t> hang_timeout_ms = {};        // not set: it is learned
  std::optional<std::int64_t> hang_first_timeout_ms = {};  // before the first progress of a round; not set: none
  // With kReport: a hang ends its round, and so many may be followed by another one. Not set: a hang ends nothing.
  std::optional<int> hang_restarts = {};
  // The limits that hold instead while the rank that has been silent the longest is in one of these sections.
  hang::SectionLimits hang_sections = {};
  bool restarts_hangs() const { return hang == Hang::kReport && hang_restarts; }
  bool operator==(const JobRules&) const = default;
  static void fields(auto& io, auto& v) {
    io("last_call_ms", v.last_call_ms, bounds::kMs);
    io("join_timeout_ms", v.join_timeout_ms, bounds::kMs);
    io("replacement_grace_ms", v.replacement_grace_ms, bounds::kMs);
    io("scale_up", v.scale_up);
    io("scale_up_after_ms", v.scale_up_after_ms, bounds::kMs);
    io("node_losses", v.node_losses);
    io("loss_window_ms", v.loss_window_ms, bounds::kMs);
    io("keep_out_ms", v.quarantine_ms, bounds::kMs);
    io("job_losses", v.job_losses);
    io.if_set("replacement_wait_ms", v.replacement_wait_ms, bounds::kMs);
    io.if_set("crash_loop", v.crash_loop);
    io.if_set("failover", v.failover);
    io.if_set("on_leave", v.on_leave);
    io.if_set("failover_evidence", v.failover_evidence);
    io.if_set("hang", v.hang);
    io.if_set("hang_timeout_ms", v.hang_timeout_ms, bounds::kMs);
    io.if_set("hang_first_timeout_ms", v.hang_first_timeout_ms, bounds::kMs);
    io.if_set("hang_restarts", v.hang_restarts, bounds::kCount);
    io.if_set("hang_sections", v.hang_sections, at_most(limits::kNvrxSections));
  }
};
constexpr auto names_of(JobRules::ScaleUp) { return std::array{"now", "after", "on-restart", "never"}; }
constexpr auto names_of(JobRules::CrashLoop) { return std::array{"stop", "restart"}; }
constexpr auto names_of(JobRules::Failover) { return std::array{"off", "majority", "unreachable"}; }
constexpr auto names_of(JobRules::OnLeave) { return std::array{"handover", "end", "wait"}; }
constexpr auto names_of(JobRules::Evidence) { return std::array{"refusal", "none"}; }
constexpr auto names_of(JobRules::Hang) { return std::array{"off", "report"}; }

// What orders a round, with its number, among all rounds of a job, those of earlier starts of the job included
// (protocol/fence.h).
struct Fence {
  // When the incarnation began: Unix time in milliseconds, by the clock of the coordinator that began it.
  std::int64_t birth_ms = 0;
  Term term = 0;  // of the coordinator that formed the round
  bool operator==(const Fence&) const = default;
  static void fields(auto& io, auto& v) { each(io, "birth_ms", v.birth_ms, "term", v.term); }
};

// What a coordinator transfers to the next leader. Agents keep it without reading it.
struct Transferred {
  std::uint64_t number = 0;  // a later state has a greater one; 0: there is none. The upper half is the giver's term
  std::string state = {};    // rendezvous/coordinator/transferred_state.h
  Term term() const { return static_cast<Term>(number >> 32); }
  bool operator==(const Transferred&) const = default;
  static void fields(auto& io, auto& v) {
    io("number", v.number);
    io("state", v.state, at_most(limits::kTransferredBytes));
  }
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
  std::optional<JobResult> job_result = {};  // if the agent has got it already
  std::int64_t birth_ms = 0;                 // the birth in the round's fence
  Transferred transferred = {};              // of the order that prepared the round
  bool error_files_wait = false;             // as in PrepareRound
  std::optional<int> false_alarm = {};       // as in NodeStopped, of the round
  bool operator==(const AgentFacts&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "incarnation", v.incarnation, "term", v.term, "round", v.round, "activity", v.activity, "place", v.place);
    io("restart_count", v.restart_count, bounds::kCount);
    io("losses", v.losses, bounds::kCount);
    io("membership", v.membership);
    io("failures", v.failures, bounds::kFailures);
    io("verdict", v.job_result);
    io.if_set("birth_ms", v.birth_ms);
    io.if_set("carried", v.transferred);
    io.if_set("error_files_wait", v.error_files_wait);
    io("false_alarm", v.false_alarm);
  }
};
constexpr auto names_of(AgentFacts::Activity) {
  return std::array{"idle", "preparing", "running", "succeeded", "stopping"};
}

// How far a rank was when its node told of it (docs/progress.md).
struct ProgressOfRank {
  std::optional<int> rank = {};  // not set: one of the node's ranks that write the same file
  std::optional<std::int64_t> step = {};
  std::optional<std::int64_t> millisteps_per_second = {};
  std::int64_t age_ms = 0;  // since its last sign of progress
  progress::Source source = progress::Source::kLines;
  progress::Phase phase = progress::Phase::kUnknown;
  std::string section = {};  // progress::Progress::section
  bool operator==(const ProgressOfRank&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "rank", v.rank, "step", v.step, "millisteps_per_second", v.millisteps_per_second);
    io("age_ms", v.age_ms, bounds::kMs);
    each(io, "source", v.source, "phase", v.phase);
    io.if_set("section", v.section, at_most(limits::kNvrxSectionBytes));
  }
};

}  // namespace elastic::protocol
