#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/election/allegiance.h"
#include "rendezvous/election/round.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/protocol/session.h"

namespace elastic::agent {

// Which coordinator the node supports, and what it testifies to the next one (docs/failover.md). Times are milliseconds
// of the agent's clock, which goes on while the machine is suspended.
class Promises {
 public:
  // `own`: the number of this agent.
  explicit Promises(protocol::AgentId own) : own_(own), allegiance_(protocol::LeaseTimes{}) {}

  // A session begins.
  void welcomed(const protocol::Welcome& welcome, std::int64_t now_ms);
  // The coordinator of that welcome, whose term may have grown, asks for the node's support.
  struct Answer {
    std::optional<protocol::Testimony> testimony = {};  // with the first promise in a session
  };
  // Nothing: the node supports another coordinator, and must not answer.
  std::optional<Answer> kept(const protocol::Welcome& welcome, std::int64_t now_ms);
  // The coordinator lends, or is about to, without asking for the node's support.
  void lent_unasked() { allegiance_.lends_unasked(); }
  // The coordinator of that welcome prepares a round with the node, perhaps before it has asked for the node's support.
  // A node that supports nobody supports it from then on: if the coordinator is lost before it has asked, the node
  // looks for the next one as the others do.
  void prepares(const protocol::Welcome& welcome, std::int64_t now_ms);

  // The node, which is done, has said to the coordinator of that welcome that it leaves. That counts it as one whose
  // death is proven, perhaps: so it supports no other process's coordinator until that one has resigned, or is dead.
  // It may say so to several, and supports none then.
  void leaves(const protocol::Welcome& welcome);
  bool has_left() const { return !leaves_.empty(); }

  // The coordinator has resigned.
  void resigned(const protocol::Welcome& welcome, std::int64_t now_ms);

  // The same for the coordinator in the node's own process, which may not have had a session of the agent's then.
  bool supports_own() const { return allegiance_.has_no_end(); }
  void own_is_over(std::int64_t now_ms);

  // The process of the coordinator that the node supports has ended; `rank`: of its node in the last round. False if
  // the node supports none.
  bool died(std::optional<int> rank, bool holds_lease, bool runs_workers, std::int64_t now_ms);

  // From when on the node may vote for any other coordinator than the one that it has promised its support to; 0: now.
  // Nothing: it has promised nothing, or without an end.
  std::optional<std::int64_t> free_at_ms(std::int64_t now_ms) const;

  // The node is told of a round, or to run its workers.
  void hears(const protocol::PrepareRound& round, protocol::Incarnation incarnation);
  void hears(const protocol::NextRound& next, protocol::Incarnation incarnation);
  void runs(protocol::RoundNumber round);

  // The node's workers have run in a later round than the verdict's, or under a later coordinator, of this start of the
  // job. Where promises count, whoever was elected after that knows of it.
  bool have_run_after(const protocol::Verdict& verdict, protocol::Incarnation incarnation) const;

  const election::KnownRounds& rounds() const { return rounds_; }

 private:
  void is_in(protocol::Incarnation incarnation);
  void testify(const election::CoordinatorId& id, std::int64_t now_ms);
  void vote(const election::CoordinatorId& id, std::int64_t now_ms);
  bool has_left_another_than(const election::CoordinatorId& id) const;
  bool has_promised() const { return allegiance_.coordinator().term != 0; }
  static election::CoordinatorId id_of(const protocol::Welcome& welcome) {
    return {welcome.term, welcome.host, welcome.incarnation};
  }

  protocol::AgentId own_;
  election::Allegiance allegiance_;
  election::KnownRounds rounds_;
  protocol::Incarnation incarnation_ = 0;                    // of these rounds
  protocol::Testimony testimony_;                            // of the last vote
  std::optional<election::CoordinatorId> testimony_is_for_;  // which was for this coordinator
  std::optional<election::CoordinatorId> has_testified_to_;  // in this session
  std::vector<election::CoordinatorId> leaves_;              // a process once
};

}  // namespace elastic::agent
