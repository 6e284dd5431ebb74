#pragma once

#include "rendezvous/coordinator/round_stop.h"
#include "rendezvous/membership/round_forming.h"
#include "rendezvous/membership/scale_up.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// How the job is run. The first node that joins brings it.
struct JobSettings {
  bool are_known = false;  // a node has joined
  protocol::JobTerms terms = {};
  protocol::JobRules rules = {};  // no time is below 0 or above limits::kMaxTimeoutSeconds
  protocol::CheckRules check = {};
  membership::FormingRules forming = {};
  membership::ScaleUp scale_up = {};

  // The forming rules of the next round, whose maximum depends on the size of the first one; 0: there was none yet.
  membership::FormingRules next_round(int first_size) const;
  // The job can have no more than so many nodes.
  bool is_most(int nodes) const;
};

JobSettings settings_of(const protocol::NodeJoins& message);

// What a job with these settings may spend, of which nothing is spent yet.
JobBudgets budgets_of(const JobSettings& settings);

}  // namespace elastic::coordinator
