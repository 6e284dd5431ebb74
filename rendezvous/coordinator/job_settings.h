#pragma once

#include "rendezvous/coordinator/round_stop.h"
#include "rendezvous/membership/round_forming.h"
#include "rendezvous/membership/scale_up.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// How the job is run, which the first node that joins brings, and what it may still spend.
struct JobSettings {
  bool are_known = false;  // a node has joined
  protocol::JobTerms terms = {};
  protocol::JobRules rules = {};  // no time is below 0 or above limits::kMaxTimeoutSeconds
  health::CheckRules check = {};
  membership::FormingRules forming = {};
  membership::ScaleUp scale_up = {};
  int first_size = 0;  // how many nodes the first round had; 0: there was none yet
  JobBudgets budgets = {};

  // The forming rules of the next round, whose maximum depends on the size of the first one.
  membership::FormingRules next_round() const;
  // Votes decide who leads. A job of one node has no other voter.
  bool counts_votes() const { return rules.failover == protocol::JobRules::Failover::kMajority && terms.max_nodes > 1; }
  // The job can have no more nodes than these.
  bool is_most(int nodes) const;
};

// Nothing of the budgets is spent: who assigns the result forgets what was.
JobSettings settings_of(const protocol::NodeJoins& message);
JobSettings settings_of(const protocol::JobTerms& terms, const protocol::JobRules& rules,
                        const health::CheckRules& check);

}  // namespace elastic::coordinator
