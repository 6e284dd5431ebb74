#include "rendezvous/coordinator/job_identity.h"

#include <algorithm>
#include <utility>

#include "rendezvous/protocol/fence.h"
#include "rendezvous/protocol/term.h"

namespace elastic::coordinator {

JobIdentity::Met JobIdentity::meet(const Introduced& agent, bool knows_a_round, bool may_go_on) {
  const protocol::Term above = agent.term < term_ ? term_ : protocol::term_after(agent.term, random_);
  if (!knows_a_round) met_others_ = true;
  const bool is_of_other = agent.incarnation == 0 || (agent.incarnation != incarnation_ && knows_a_round);
  if (is_of_other) {
    // Terms order the coordinators of one incarnation of the job. The agent has met a coordinator of another
    // incarnation, and would take this one for an outdated one if its term were lower.
    if (!knows_a_round || agent.term > term_) term_ = above;
    return Met::kNothingNew;
  }
  if (!knows_a_round) {
    // The job began before this coordinator: it keeps its incarnation, and this coordinator takes a higher term.
    incarnation_ = agent.incarnation;
    term_ = above;
    return Met::kJob;
  }
  if (agent.term <= term_) return Met::kNothingNew;
  if (!may_go_on) return Met::kLaterCoordinator;
  // The coordinator that the agent has met may have died since, or was never elected.
  term_ = above;
  return Met::kNothingNew;
}

bool JobIdentity::begins_anew() { return std::exchange(incarnation_, own_incarnation_) != own_incarnation_; }

void JobIdentity::hear_of_birth(const protocol::AgentFacts& facts, bool knows_a_round) {
  if (facts.incarnation == 0 || facts.birth_ms <= 0) return;
  const std::int64_t reported_ms = std::min(facts.birth_ms, protocol::kLatestBirthMs);
  if (facts.incarnation != incarnation_) {
    // The clock by which that incarnation began may be ahead of ours: this incarnation is the later one all the same.
    birth_ms_ = std::max(birth_ms_, std::min(reported_ms + 1, protocol::kLatestBirthMs));
  } else if (knows_a_round) {
    birth_ms_ = std::max(birth_ms_, reported_ms);
  } else {
    birth_ms_ = std::max(reported_ms, least_birth_ms_);
  }
}

}  // namespace elastic::coordinator
