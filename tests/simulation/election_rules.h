#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/transferred_state.h"
#include "rendezvous/protocol/codec.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::simulation {

class Node;
class Server;
class Simulation;

// What must hold between one coordinator of a job and the next, as far as the messages show it:
//
// - What binds nodes (PrepareRound, RunWorkers, EndJob) is sent by a coordinator that may act, by the votes of its
//   nodes. A candidate only passes on a job result that a coordinator has given.
// - A round runs only when a quorum of each round that may be the last one has heard of it (where votes decide). A
//   member whose process is gone counts: it will never vote.
// - A later coordinator knows what the one before had when the last round that ran was prepared: the rules, the size of
//   the first round, and, where votes decide, so that no knowledge is lost, the budgets, the hosts that are quarantined
//   and those that are evicted.
class ElectionRules {
 public:
  explicit ElectionRules(Simulation& simulation) : simulation_(simulation) {}

  void sent(const Node& node, protocol::AgentId agent, const protocol::Stamp& stamp,
            const protocol::PrepareRound& message, const Server& server);
  void sent(const Node& node, const protocol::Stamp& stamp, const protocol::RunWorkers& message, const Server& server);
  void sent(const Node& node, const protocol::Stamp& stamp, const protocol::EndJob& message, const Server& server);
  // A coordinator has handled an event.
  void has_acted(const std::string& job, const Server& server);
  // The agent's elastic-run ends, or is to end: it looks for no other coordinator any more.
  void leaves(protocol::AgentId agent) { leaving_.insert(agent); }
  void heard(const Node& node, protocol::AgentId agent, const protocol::Stamp& stamp, protocol::RoundNumber round);

 private:
  using Job = std::pair<std::string, protocol::Incarnation>;
  struct Prepared {
    std::map<int, protocol::AgentId> members;  // by node rank
    std::vector<protocol::Round> before;
    std::set<protocol::AgentId> hearers;
    std::optional<coordinator::TransferredState> transferred;
    bool has_run = false;
  };
  using Key = std::tuple<std::string, protocol::Incarnation, protocol::Term, protocol::RoundNumber>;
  struct Last {
    protocol::Term term = 0;
    coordinator::TransferredState transferred;
    bool asks = false;  // its coordinator acts with the votes of its nodes
  };

  static bool may_act(const std::string& job, protocol::Incarnation incarnation, const Server& server);
  void check_may_act(const Node& node, const protocol::Stamp& stamp, const Server& server, const char* what) const;
  bool is_new(const Job& job, const protocol::JobResult& job_result);
  void check_heard(const Prepared& round, const Key& key) const;
  void check_transferred(const Job& job, const Prepared& round, const Last& before) const;
  bool is_gone(protocol::AgentId agent) const;

  Simulation& simulation_;
  std::map<Key, Prepared> rounds_;
  std::map<Job, Last> last_;  // the last round that ran
  std::map<Job, std::vector<protocol::JobResult>> given_;
  std::set<protocol::AgentId> leaving_;
};

}  // namespace elastic::simulation
