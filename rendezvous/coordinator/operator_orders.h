#pragma once

#include <optional>
#include <set>

#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/membership/round_forming.h"

namespace elastic::coordinator {

// Decides what becomes of an operator's order: whether it is carried out, which node it means, and what the operator is
// told. It remembers the nodes that were told to leave: if a node's session ends before it has read the order, it gets
// the order again in its next session.
class OperatorOrders {
 public:
  // What is known of the job.
  struct Facts {
    const membership::Roster& roster;
    membership::FormingRules next_round;   // the forming rules of the next round
    bool has_workers = false;              // a round is prepared, runs or is being stopped
    bool job_ends = false;                 // the job has its result, or ends when its round has stopped
    bool may_transfer_leadership = false;  // another node can be elected coordinator
  };
  struct Ruling {
    std::optional<protocol::AgentId> leaves = {};  // this node, which has a session, is to be told to leave
    bool stops = false;                            // the job is to be stopped
    OrderAnswered answer = {};
  };
  Ruling judge(const OperatorOrder& order, const Facts& facts);

  // How many nodes stay if this one leaves.
  int others(protocol::AgentId node, const membership::Roster& roster) const;
  // The node was told to leave, and has not left yet.
  bool has_drained(protocol::AgentId agent) const { return drained_.contains(agent); }
  void has_left(protocol::AgentId agent) { drained_.erase(agent); }

 private:
  Ruling judge_drain(const OperatorOrder& order, const Facts& facts);
  std::set<protocol::AgentId> drained_;  // limits::kNodesPerJob at most
};

}  // namespace elastic::coordinator
