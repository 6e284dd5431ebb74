#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rendezvous/election/authority.h"
#include "rendezvous/election/quorum_tracker.h"
#include "rendezvous/election/round.h"
#include "rendezvous/election/voter_set.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::election {

// A round whose quorum a coordinator needs.
struct NeededRound {
  Round round;
  VoterSet voter_set;
};

// A coordinator's side of the promises: who supports it until when, and so until when it may act. It may act while it
// has a quorum of the last round that ran, or of each round that may be the last one. To run another round it needs a
// quorum of that one, too. Until the first round has run nobody else can be elected, so that the coordinator that began
// the job needs no one.
//
// Times are milliseconds of the coordinator's clock, which goes on while the machine is suspended. What an agent has
// promised is not taken back when its session ends.
class LeaderLease {
 public:
  // `own`: the agent in the coordinator's own process. Once it has promised its support, it supports the coordinator
  // until that resigns; before, it may be bound by a promise to another one. Nothing: the coordinator is on none of the
  // nodes. `needed`: what an election has found (candidate.h), the earliest round first; empty: the
  // coordinator begins a job.
  LeaderLease(protocol::LeaseTimes times, std::optional<protocol::AgentId> own, std::vector<NeededRound> needed = {});

  // The agent's promise counts from `since_ms`: when the KEPT was sent that it has acknowledged, or the CHALLENGE that
  // its NodeJoins answers. Both come before the agent made the promise.
  void acknowledges(protocol::AgentId agent, std::int64_t since_ms);
  // The agent joins, and has these places in rounds that may be needed.
  void joins(protocol::AgentId agent, const std::vector<KnownRound>& rounds);
  // The agent's process is proven dead, or has ended in order. If its promise held, it can never support another
  // coordinator, and counts as a supporter for as long as its rounds are needed. False if it did not hold: then nothing
  // changes.
  bool died(protocol::AgentId agent, std::int64_t now_ms);

  // The coordinator prepares this round of these agents, by node rank.
  void prepare(const Round& round, const std::vector<protocol::AgentId>& members);
  // The agent, of this round or of one that is needed, has heard that the round is prepared.
  void hears(protocol::AgentId agent);
  // The workers of the prepared round may be started: a quorum of each round that is needed has heard of it, so that
  // nobody can be elected who does not know it, and its own quorum lasts as long as every lease that was lent.
  bool may_run(std::int64_t now_ms) const;
  // They are started: from now on this round alone is needed. To be called while may_run().
  void run(std::int64_t now_ms);
  // The prepared round will never run. This may always be said.
  void abandon();

  Authority authority() const;
  // How long a lease may last that is granted now, counted by the agent from when it sent its keep-alive, in
  // milliseconds: never longer than the authority. 0 without authority.
  std::int64_t grant_ms(std::int64_t now_ms);
  // The rounds whose quorum is needed, without the prepared one, the earliest first. They go with PrepareRound.
  std::vector<Round> before() const;

 private:
  // One round with its members, as far as they are known.
  struct Ballot {
    Round round;
    QuorumTracker quorum_tracker;
    std::map<protocol::AgentId, int> ranks = {};
  };
  void place(Ballot& ballot, protocol::AgentId agent, int rank);
  std::int64_t voted_until_ms(protocol::AgentId agent) const;
  std::int64_t base_ends_ms() const;
  template <class Action>
  void in_each_ballot_of(protocol::AgentId agent, Action action);

  protocol::LeaseTimes times_;
  std::optional<protocol::AgentId> own_;
  std::map<protocol::AgentId, std::int64_t> voted_until_ms_;
  std::set<protocol::AgentId> hearers_;  // of the prepared round; who has which rank may be learned later
  std::vector<Ballot> base_;             // the earliest first; empty: no round has run
  std::optional<Ballot> prepared_;
  std::int64_t granted_until_ms_ = QuorumTracker::kNever;  // when every lease that was lent is over
};

}  // namespace elastic::election
