#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rendezvous/election/leader_lease.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::election {

// A candidate for coordinator: its votes, and whether they are enough. The voter states say which round may be the last
// one that ran, and the candidate needs a quorum of it. If no voter knows that the latest round has run, it needs a
// quorum of each that may be the last.
//
// An election takes two steps. A vote lasts for a limited time. When the votes are a quorum, the candidate sends each
// voter a lease grant (KEPT) of 0 ms; a voter that acknowledges it never votes for an earlier term again. With only one
// step, a node that was cut off and campaigned without enough votes would come back with a higher term than that of a
// healthy coordinator. Times are milliseconds of the candidate's clock.
class Candidate {
 public:
  // `own`: the agent in the candidate's process, whose vote lasts until the candidate resigns; empty: the candidate is
  // on none of the nodes.
  Candidate(protocol::LeaseTimes times, std::optional<protocol::AgentId> own) : times_(times), own_(own) {}

  // The agent votes for this candidate: its first lease ack has come now. The vote counts from `since_ms`, when the
  // lease grant was sent that it answers.
  void votes(protocol::AgentId agent, VoterState voter_state, std::int64_t since_ms, std::int64_t now_ms);
  // The voters are a quorum: each of them is to be sent a lease grant.
  bool has_quorum(std::int64_t now_ms) const;
  // The agent has acknowledged, in the session in which it voted, the lease grant that was sent at `since_ms`.
  void acknowledges(protocol::AgentId agent, std::int64_t since_ms);

  struct Elected {
    LeaderLease lease;
    // Until then workers may run on nodes that do not join, under leases of the previous coordinator.
    std::int64_t others_may_run_until_ms = 0;
  };
  // The candidate is the coordinator from now on; empty while the voters that have acknowledged are no quorum.
  std::optional<Elected> elected(std::int64_t now_ms) const;

 private:
  struct Vote {
    VoterState voter_state;
    std::int64_t since_ms = 0;
    std::int64_t others_may_run_until_ms = 0;
    bool is_acknowledged = false;
  };
  using Votes = std::vector<std::pair<protocol::AgentId, const Vote*>>;

  Votes present(std::int64_t now_ms, bool acknowledged_only) const;
  std::optional<std::vector<NeededRound>> needed(const Votes& votes) const;
  VoterSet voter_set_of(const Round& round, const Votes& votes) const;

  protocol::LeaseTimes times_;
  std::optional<protocol::AgentId> own_;
  std::map<protocol::AgentId, Vote> votes_;
};

}  // namespace elastic::election
