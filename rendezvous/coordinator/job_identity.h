#pragma once

#include <cstdint>

#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Which job this coordinator runs (its incarnation and birth), and its place among the coordinators of that job (its
// term). All may change while the coordinator knows the job by its agents only: it takes over the incarnation that they
// have met, with a term above theirs.
class JobIdentity {
 public:
  struct Begins {
    protocol::Term term = 1;
    protocol::Incarnation incarnation = 1;
    std::uint32_t random = 0;         // goes into the terms that the coordinator takes
    std::int64_t birth_ms = 0;        // when the incarnation begins, in Unix milliseconds
    std::int64_t least_birth_ms = 0;  // of an incarnation that is taken over: see CoordinatorConfig
  };
  explicit JobIdentity(const Begins& begins)
      : term_(begins.term),
        own_incarnation_(begins.incarnation),
        incarnation_(begins.incarnation),
        random_(begins.random),
        birth_ms_(begins.birth_ms),
        least_birth_ms_(begins.least_birth_ms) {}

  enum class Met : std::uint8_t {
    kNothingNew,
    kJob,               // the coordinator has the incarnation of the agent's job from now on
    kLaterCoordinator,  // a later coordinator runs this job: this one has to end
  };
  // An agent introduces itself. `knows_a_round`: this coordinator has formed a round or takes one over, so that its
  // incarnation is settled. `may_go_on`: also if the agent has met a coordinator of a later term, since that one can
  // have decided nothing, or this one has decided nothing yet about the round that it takes over.
  Met meet(const Introduced& agent, bool knows_a_round, bool may_go_on);

  // The first round is formed, and no node has reported a round. Only nodes that know a round of an incarnation go on
  // with it: this coordinator leaves the one that an agent has met to them, and begins its own. Returns whether there
  // was such an agent.
  bool begins_anew();

  // A node joins and reports when its job began. `knows_a_round`: as for meet().
  void hear_of_birth(const protocol::AgentFacts& facts, bool knows_a_round);

  protocol::Term term() const { return term_; }
  protocol::Incarnation incarnation() const { return incarnation_; }
  // Part of the fences of the rounds that this coordinator forms.
  protocol::Fence fence() const { return {birth_ms_, term_}; }
  // An agent that introduced itself while no round was known has been with another coordinator before.
  bool met_others() const { return met_others_; }

 private:
  protocol::Term term_;
  protocol::Incarnation own_incarnation_;  // of the job that it begins if it takes none over
  protocol::Incarnation incarnation_;
  std::uint32_t random_;
  std::int64_t birth_ms_;
  std::int64_t least_birth_ms_;
  bool met_others_ = false;
};

}  // namespace elastic::coordinator
