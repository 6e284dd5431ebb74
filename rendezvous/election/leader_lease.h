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

// A coordinator's side of the votes: which agent votes for it until when, and so until when it may act. It may act
// while it has a quorum of the last round that ran, or of each round that may be the last one. To run another round it
// needs a quorum of that one, too. Until the first round has run nobody else can be elected, so that the coordinator
// that began the job needs no votes.
//
// Times are milliseconds of the coordinator's clock, which goes on while the machine is suspended. An agent's vote does
// not end with its session.
class LeaderLease {
 public:
  // `own`: the agent in the coordinator's own process. Its vote lasts until the coordinator resigns; before that vote,
  // it may be bound by one for another coordinator. Empty: the coordinator is on none of the nodes. `needed`: what an
  // election has found (candidate.h), the earliest round first; empty: the coordinator begins a job.
  LeaderLease(protocol::LeaseTimes times, std::optional<protocol::AgentId> own, std::vector<NeededRound> needed = {});

  // The agent's vote counts from `since_ms`, when the coordinator sent the lease grant (KEPT) that the agent has
  // acknowledged: earlier than the vote.
  void acknowledges(protocol::AgentId agent, std::int64_t since_ms);
  // The agent joins, and has these ranks in rounds that may be needed.
  void joins(protocol::AgentId agent, const std::vector<KnownRound>& rounds);
  // The agent's process is proven dead, or has ended in order. If its vote had not ended, it can never vote for another
  // coordinator, and counts as a voter for as long as its rounds are needed. False if its vote had ended: then nothing
  // changes.
  bool died(protocol::AgentId agent, std::int64_t now_ms);

  // The coordinator prepares this round of these agents, by node rank.
  void prepare(const Round& round, const std::vector<protocol::AgentId>& members);
  // The agent, a member of this round or of a needed one, has heard that the round is prepared.
  void hears(protocol::AgentId agent);
  // The workers of the prepared round may be started: a quorum of each needed round has heard of it, so that no
  // candidate can be elected without knowing it, and its own quorum lasts as long as every granted lease.
  bool may_run(std::int64_t now_ms) const;
  // They are started: from now on this round alone is needed. Called only while may_run().
  void run(std::int64_t now_ms);
  // The prepared round will never run. May be called at any time.
  void abandon();

  Authority authority() const;
  // How long a lease that is granted now may last, in milliseconds from when the agent sent its keep-alive: never
  // longer than the authority. 0 without authority.
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
  std::set<protocol::AgentId> hearers_;  // of the prepared round; their ranks may be learned later
  std::vector<Ballot> base_;             // the earliest first; empty: no round has run
  std::optional<Ballot> prepared_;
  std::int64_t granted_until_ms_ = QuorumTracker::kNever;  // when every granted lease is over
};

}  // namespace elastic::election
