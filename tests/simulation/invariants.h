#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/protocol/messages.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/workers.h"

namespace elastic::simulation {

class Node;
class Server;
class Simulation;

// An invariant that did not hold. It is thrown where that is noticed.
struct Broken {
  std::string what;  // the name of the invariant
  std::string text;  // what happened, for a person
};

// What must always hold, whatever goes wrong.
//
// The lease rule: while a worker of a round is alive, no worker of another round of the same incarnation of the job
// is started, and none of the same round with its rank. Three exceptions follow from what a process can do: in a host
// that is frozen whole (a virtual machine) nothing runs, its workers neither, so they do not count; where an agent is
// stopped and its guardian is dead, no process is left to end the workers, so they do not count either
// (docs/rendezvous.md tells users); and for kKillMs after that they may be there, since the guardian or the agent first
// has to look at the clock (3 ms here) and the kernel to kill (30 ms here). All else has to fit between the lease and
// the time that the coordinator waits for it: clocks of nodes that differ from the coordinator's by 1 %, agents that
// are stopped (their guardian enforces the lease), SIGKILL that takes 30 ms.
class Invariants {
 public:
  static constexpr Ms kKillMs = 60;

  explicit Invariants(Simulation& simulation) : simulation_(simulation) {}

  // A coordinator has sent this message to an agent. Its bytes may never arrive.
  void sent(const Node& node, protocol::AgentId agent, const protocol::Stamp& stamp,
            const protocol::PrepareRound& message, const Server& server);
  void sent(const Node& node, protocol::AgentId agent, const protocol::Stamp& stamp,
            const protocol::RunWorkers& message);
  void sent(const Node& node, protocol::AgentId agent, const protocol::Stamp& stamp, const protocol::EndJob& message,
            const Server& server);
  void sent(const Node& node, protocol::AgentId agent, const protocol::Stamp& stamp, const protocol::Dismiss& message,
            const Server& server);
  // The entry of a file is another one from now on; an empty text is none.
  void entry_changes(const std::string& before, const std::string& after) const;
  // A node begins a job in the place of that entry.
  void entry_is_replaced(const std::string& entry) const;
  // Where votes decide: of the coordinators of one incarnation of a job at most one may act, whatever the clocks say.
  void one_acts() const;
  // The same, a while after the last fault: no job goes on twice, since one that was begun anew beside one that runs
  // gives way or ends, if there is a process at the endpoint, or a file, by which they hear of each other.
  void none_runs_twice() const;
  // The agent reports that none of this round's processes are left on its node, or that its workers have succeeded.
  void answered(const Node& node, protocol::AgentId agent, protocol::Incarnation incarnation,
                protocol::RoundNumber round);
  void turned_away(protocol::AgentId agent) { turned_away_.insert(agent); }
  void store_opened(std::uint16_t port, const Node& node);
  // A process that may have known of a round has ended: an agent, or a coordinator that a new one replaces.
  void knowledge_is_lost();

  void workers_start(const Node& node, const agent::StartWorkers& order, protocol::Incarnation incarnation);
  void worker_started(WorkerId id);
  // A process of the node runs again that can end its workers: its host was frozen, or its agent was stopped while its
  // guardian was dead.
  void workers_can_be_killed(const Node& node);
  void agent_finished(const Node& node, const agent::Finish& end);

  // A job result that no living agent has got is lost when the coordinator that gave it dies: nodes that were cut off
  // all the time may come to another end.
  void look_for_witnesses();

  // There have been no faults since that time.
  void settled(Ms since_ms);
  void ended();
  // What the product keeps in memory is bounded by the number of nodes.
  void look_at_sizes();
  // After each step of the timeline.
  void time_goes_on();
  void rounds_or_verdicts_since_calm_begin() { news_.clear(); }

  [[noreturn]] void broken(const std::string& what, const std::string& text) const;

 private:
  using RoundKey = std::tuple<std::string, protocol::Incarnation, protocol::RoundNumber>;
  struct Member {
    protocol::AgentId agent = 0;
    int workers = 0;
    int base_rank = 0;
    std::string role;
  };
  // A round as one coordinator has formed it. If that coordinator dies before any node gets to know the round, the next
  // one may form another round of the same number.
  struct Formed {
    std::uint64_t membership = 0;
    protocol::Term term = 0;
    protocol::NodePlace place;  // only its sizes are used
    int restart_count = 0;
    std::map<int, Member> members;  // by node rank
    std::set<protocol::AgentId> agents;
    std::optional<protocol::StoreEndpoint> store;
    protocol::Fence fence;
  };
  // An incarnation of a job, in the order in which they formed their first rounds.
  struct Begun {
    protocol::Incarnation incarnation = 0;
    std::string fence;                                           // of the workers that were started last
    std::pair<protocol::Term, protocol::RoundNumber> last = {};  // the same, without the birth
    Ms formed_ms = 0;                                            // its first round was
    Ms started_ms = -1;                                          // these workers were; before 0: none
  };
  Formed* find(const RoundKey& key, std::uint64_t membership, std::optional<protocol::Term> term = {});
  void check_sizes(const Node& node, const protocol::PrepareRound& message) const;
  void check_ranks(const Formed& formed) const;
  void check_charge(const Node& node, const protocol::Stamp& stamp, const protocol::PrepareRound& message) const;
  void check_beginning(const Node& node, const protocol::PrepareRound& round, protocol::Incarnation incarnation) const;
  void check_fence(const Node& node, const protocol::PrepareRound& round, protocol::Incarnation incarnation);
  bool is_known(const std::string& job, const Begun& begun) const;
  void forget_what_was_cut_off(const Node& node, const protocol::Stamp& stamp, const protocol::PrepareRound& message,
                               const Server& server);
  std::vector<protocol::AgentId> unanswered(const std::string& job, protocol::Incarnation incarnation,
                                            protocol::RoundNumber round) const;
  void check_alone(WorkerId id) const;
  bool counts(const Worker& worker) const;

  Simulation& simulation_;
  std::map<RoundKey, std::vector<Formed>> rounds_;
  std::map<RoundKey, std::set<protocol::AgentId>> answered_;
  std::map<std::pair<std::string, protocol::Incarnation>, std::map<protocol::RoundNumber, int>> counts_;  // of restarts
  std::map<std::string, std::vector<Begun>> begun_;                                                       // by job
  std::map<std::pair<std::string, protocol::Incarnation>,
           std::map<protocol::Term, std::map<protocol::JobResult::Outcome, int>>>
      outcomes_;
  std::map<std::pair<std::string, protocol::Incarnation>, protocol::Term> judges_;   // the term of the last job result
  std::map<std::pair<std::string, protocol::Incarnation>, std::uint64_t> given_by_;  // results: Server::start_number()
  // The details of the failure that the nodes of a failed job got, by Server::start_number().
  std::map<std::tuple<std::string, protocol::Incarnation, std::uint64_t>, std::string> details_;
  std::set<protocol::AgentId> told_;  // the job result
  // The term of the coordinator that gave a job result first, by the job result.
  std::map<std::tuple<std::string, protocol::Incarnation, protocol::JobResult::Outcome, std::string>, protocol::Term>
      first_given_;
  std::set<protocol::AgentId> told_of_failure_;
  std::map<std::uint16_t, protocol::AgentId> stores_;  // by port: the agent that opened it
  std::set<protocol::AgentId> turned_away_;
  std::map<int, Ms> killable_since_;  // by node, see workers_can_be_killed()
  Ms last_ms_ = 0;                    // the time of the last step
  int steps_at_once_ = 0;             // at that time
  std::set<std::string> news_;        // jobs that have run a round or got a job result
};

}  // namespace elastic::simulation
