#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/attribution.h"
#include "rendezvous/coordinator/budget.h"
#include "rendezvous/coordinator/crash_loop.h"
#include "rendezvous/coordinator/loss_budget.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/job_states.h"
#include "src/status/snapshot.h"

namespace elastic::coordinator {

// What a job may still spend before it ends.
struct JobBudgets {
  RestartBudget restarts{0};
  LossBudget losses{LossRules{}};
  CrashLoop crash_loop = {};
  bool error_files_wait = false;  // a job gets one false alarm only (RoundStop::false_alarm)
};

// Why a round is being stopped. It is filled while nodes stop; conclude() decides what follows when all have.
struct RoundStop {
  // A user ordered the end of the job, or a node cannot run its workers at all: no other round follows.
  bool job_ends = false;
  Outcome outcome = Outcome::kFailed;
  int signal = 0;
  std::string fatal = {};  // the reason in the result of a job that ends

  std::vector<LostNode> lost = {};
  std::vector<std::string> left = {};  // sentences about nodes that got a signal and leave the job
  bool worker_failed = false;
  std::vector<protocol::WorkerFailure> failures = {};
  std::vector<std::pair<int, protocol::Crash>> crashes = {};  // the first failure of each node, by node rank
  // The rank of the worker for whose error file the round is stopped, if nothing had stopped it before.
  std::optional<int> stopped_for = {};
  // The rank of a worker that has not failed, though its node had stopped the round for its error file.
  std::optional<int> false_alarm = {};
  // Why the round was stopped for a hang, as a clause; empty: it was not.
  std::string hang = {};
  std::set<protocol::AgentId> aborts = {};  // with `hang`: nodes with StopWorkers::aborts
  bool dumps = false;                       // with `hang`: StopWorkers::dumps
  std::string other = {};  // a reason that --max-restarts does not count: scaling up, an unhealthy node
  bool by_check = false;   // `other` comes from the check before training

  // The job ends in failure, for this reason: a node cannot run its workers, or another job of this name goes on.
  // The first such reason is kept.
  void fails(std::string reason);
  // The job ends because the coordinator's node leaves: by a signal, or since its outer process was killed.
  void host_leaves(const std::string& node, const protocol::NodeLeaves& leaves);
  // The job ends because an operator has ordered it.
  void operator_stops();
  // The job result, if the job ends, without the failures of its workers.
  protocol::JobResult job_result() const { return {.outcome = outcome, .reason = fatal, .signal = signal}; }
  // Adds the failures that the node reports. If there are too many, the likeliest causes are kept. `names_host`: a
  // failure names the node's host.
  void add_failures(const membership::Node& node, const std::vector<protocol::WorkerFailure>& more, bool names_host);
  // The node is lost. Returns false if another node of its host is lost already: a host that dies takes all its agents
  // with it, and is charged with one loss.
  bool lose(const membership::Node& node, const std::string& how);
};

// Why there is another round.
struct Again {
  std::string because = {};  // as a clause; empty before the second round
  RoundCause cause = RoundCause::kFirst;
  bool charged = false;  // --max-restarts counts it
};

// What follows from a round that has stopped.
struct Conclusion {
  std::optional<protocol::JobResult> job_result = {};  // set if the job ends, without its round and restarts
  // Why there is another round, or would be one if the budgets allowed it; empty if none would follow in any case.
  std::optional<Again> again = {};
  std::vector<protocol::WorkerFailure> failures = {};  // of the round, the cause first
  std::vector<status::Failure> counted = {};           // those that the job's status lists, without round and age
};

// The facts of the round beside why it stopped.
struct StoppedRound {
  bool all_succeeded = false;  // the workers of all its nodes had succeeded before they were told to stop
  bool has_run = false;        // its workers were told to start
  bool is_check_only = false;  // --check-only
  protocol::JobRules::CrashLoop crash_loop = protocol::JobRules::CrashLoop::kStop;
};

// To be called once for each round, when each of its nodes has stopped or is lost. Spends a restart if a worker failed
// by itself and nothing else explains that: a lost node, a node that left, a false alarm, or a stop that was ordered
// before.
Conclusion conclude(RoundStop stop, const StoppedRound& round, JobBudgets& budgets);

}  // namespace elastic::coordinator
