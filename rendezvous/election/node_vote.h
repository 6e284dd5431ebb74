#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/election/round.h"
#include "rendezvous/election/voter.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/session.h"

namespace elastic::election {

// Which coordinator the node votes for, and the voter state that it sends to the next one (docs/failover.md). Times are
// milliseconds of the agent's clock, which goes on while the machine is suspended.
class NodeVote {
 public:
  // `own`: the number of this agent.
  explicit NodeVote(protocol::AgentId own) : own_(own), voter_(protocol::LeaseTimes{}) {}

  // A session begins.
  void welcomed(const protocol::Welcome& welcome, std::int64_t now_ms);
  // The coordinator of that welcome, whose term may have grown, asks for the node's vote.
  struct Answer {
    std::optional<protocol::VoterState> voter_state = {};  // with the first lease ack of a session
  };
  // Empty: the node votes for another coordinator, and must not answer.
  std::optional<Answer> lease_granted(const protocol::Welcome& welcome, std::int64_t now_ms);
  // The coordinator grants leases, or is about to, without asking for the node's vote.
  void granted_unasked() { voter_.grants_unasked(); }
  // The coordinator of that welcome prepares a round with the node, perhaps before it has asked for the node's vote. A
  // node that has never voted votes for it from then on: if the coordinator is lost before it has asked, the node looks
  // for the next one as the others do.
  void prepares(const protocol::Welcome& welcome, std::int64_t now_ms);

  // The node, which is done, has told the coordinator of that welcome that it leaves. That one may now count it as
  // proven dead, so the node votes for no coordinator of another process until that one has resigned or is dead. It may
  // have told several, and then votes for none.
  void leaves(const protocol::Welcome& welcome);
  bool has_left() const { return !leaves_.empty(); }

  // The coordinator has resigned.
  void resigned(const protocol::Welcome& welcome, std::int64_t now_ms);

  // The same for the coordinator in the node's own process, with which the agent may have had no session then.
  bool votes_for_own() const { return voter_.has_no_end(); }
  void own_is_over(std::int64_t now_ms);

  // The process of the coordinator that the node votes for has ended; `rank`: of its node in the last round. False if
  // the node votes for none.
  bool died(std::optional<int> rank, bool holds_lease, bool runs_workers, std::int64_t now_ms);

  // From when on the node may vote for any other coordinator than the one that it votes for; 0: now. Empty: it has
  // never voted, or its vote has no end.
  std::optional<std::int64_t> free_at_ms(std::int64_t now_ms) const;

  void hears(const protocol::PrepareRound& round, protocol::Incarnation incarnation);
  void hears(const protocol::NextRound& next, protocol::Incarnation incarnation);
  void runs(protocol::RoundNumber round);

  // The node's workers have run in a later round than that of the job result, or under a later coordinator, of this
  // start of the job. Where votes count, every coordinator that was elected after that knows of it.
  bool have_run_after(const protocol::JobResult& job_result, protocol::Incarnation incarnation) const;

  const KnownRounds& rounds() const { return rounds_; }

 private:
  void is_in(protocol::Incarnation incarnation);
  void note_voter_state(const CoordinatorId& id, std::int64_t now_ms);
  void vote(const CoordinatorId& id, std::int64_t now_ms);
  bool has_left_another_than(const CoordinatorId& id) const;
  bool has_voted() const { return voter_.coordinator().term != 0; }
  static CoordinatorId id_of(const protocol::Welcome& welcome) {
    return {welcome.term, welcome.host, welcome.incarnation};
  }

  protocol::AgentId own_;
  Voter voter_;
  KnownRounds rounds_;
  protocol::Incarnation incarnation_ = 0;            // of these rounds
  protocol::VoterState voter_state_;                 // of the last vote
  std::optional<CoordinatorId> voter_state_is_for_;  // the coordinator of that vote
  std::optional<CoordinatorId> sent_state_to_;       // in this session
  std::vector<CoordinatorId> leaves_;                // each process once
};

}  // namespace elastic::election
