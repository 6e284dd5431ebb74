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

// A node that stands for election: who votes for it, and whether that is enough to be the job's coordinator. The
// voters' testimonies say which round may be the last one that ran, and the candidate needs a quorum of it. If no voter
// knows that the latest round has run, it needs a quorum of each round that may be the last one.
//
// It takes two steps. A vote is a promise for a while. When the votes are enough, the candidate sends each voter a KEPT
// that lends nothing, and by acknowledging it a voter turns away from earlier terms for good. With only one step, a
// node that was cut off and stood in vain would come back with a higher term than that of a coordinator who does well.
// Times are milliseconds of the candidate's clock.
class Candidate {
 public:
  // `own`: the agent in the candidate's process, which votes for it too, and supports it until it resigns; nothing: it
  // is on none of the nodes.
  Candidate(protocol::LeaseTimes times, std::optional<protocol::AgentId> own) : times_(times), own_(own) {}

  // The agent votes for this candidate: NodeJoins has come now. The promise counts from `since_ms`, when the CHALLENGE
  // was sent that it answers.
  void votes(protocol::AgentId agent, VoterState voter_state, std::int64_t since_ms, std::int64_t now_ms);
  // The voters are a quorum: each of them is to be sent a KEPT.
  bool has_quorum(std::int64_t now_ms) const;
  // The agent has acknowledged, in the session in which it has voted, the KEPT that was sent at `since_ms`.
  void acknowledges(protocol::AgentId agent, std::int64_t since_ms);

  struct Elected {
    LeaderLease lease;
    // Until then workers may run on nodes that do not come, under leases of the coordinator before.
    std::int64_t others_may_run_until_ms = 0;
  };
  // What the candidate has as coordinator, from now on; nothing while those who have acknowledged are no quorum.
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
