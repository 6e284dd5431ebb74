#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/election/next_leaders.h"
#include "rendezvous/election/peer_ports.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::election {

class Candidate;
class LeaderLease;

// The leader's side of the votes, also while the coordinator is only a candidate, or votes do not count: whether it may
// act for its job. With failover=off it always may. Otherwise votes count: it needs those
// of a quorum of the last round (docs/failover.md). One that begins a job needs none until a round has run; one that
// takes a job over has to be elected. Times are milliseconds of the coordinator's clock.
class Leader {
 public:
  // `own`: the agent in the coordinator's process; empty: it is on none of the nodes, and then `own_process` is where
  // the process listens, if that is known.
  Leader(protocol::LeaseTimes times, std::optional<protocol::AgentId> own,
         std::optional<protocol::NextLeader> own_process);
  Leader(Leader&&) noexcept;
  ~Leader();

  // Votes count, or do not. `has_round`: a round has run, or may have.
  void follow(bool counts_votes, bool has_round, std::int64_t now_ms);
  // A round of the job has run already: this coordinator has to be elected within a loss timeout. Called again when the
  // term of a candidate has changed: votes in the earlier term count no more, and each node is to be asked anew.
  void campaign(std::int64_t now_ms);
  // Was elected, or needs no election.
  bool may_act() const { return !candidate_; }
  // Votes count, and this is no candidate.
  bool leads_by_votes() const { return lease_ != nullptr; }
  // The coordinator is a candidate, and its votes are no quorum.
  bool lacks_votes(std::int64_t now_ms) const;
  // Votes count, and a round has run: this coordinator may act for so long as it has a quorum of its nodes.
  bool needs_votes() const;
  // It needs votes and has them: no other coordinator has a leader lease.
  bool is_sole_leader(std::int64_t now_ms) const;

  // The agent votes for this coordinator: its lease ack is for the grant that was sent at `since_ms`. With its first
  // vote for a coordinator comes its voter state; one that makes no sense counts as an empty one.
  void acknowledges(protocol::AgentId agent, const std::optional<protocol::VoterState>& voter_state,
                    std::int64_t since_ms, std::int64_t now_ms);
  // The agent's process has ended.
  void died(protocol::AgentId agent, std::int64_t now_ms);

  // What has become of the candidate.
  struct Count {
    bool asks = false;  // its votes are a quorum: each node is asked once more, by a lease grant of 0 ms
    // It is elected: until when workers may run on nodes that do not come, under leases of the coordinator before.
    std::optional<std::int64_t> others_may_run_until_ms = {};
  };
  // Called whenever something was decided; does nothing unless the coordinator is a candidate. `has_voters`: a node
  // that was in a round of this start of the job has a session.
  Count count_votes(bool has_voters, std::int64_t now_ms);

  // What goes with PrepareRound.
  struct Begun {
    std::vector<protocol::Round> before;        // the rounds whose quorum the next leader needs, the earliest first
    std::optional<int> host_rank;               // of the node that hosts the coordinator; empty: none of these does
    std::vector<protocol::NextLeader> leaders;  // see next_leaders()
  };
  // The coordinator prepares this round of these agents, by node rank. An earlier one that has not run never will.
  // `round.tie_breaker` is filled in here.
  Begun begin_round(protocol::Round round, const std::vector<NextLeaderCandidate>& members);
  // The agent has heard of the prepared round.
  void hears(protocol::AgentId agent);
  // The workers of the prepared round are started now, if they may be.
  bool run(std::int64_t now_ms);
  // The prepared round will never run.
  void abandon();
  // What nodes that are not in a round are told while it is prepared, if it needs a quorum of earlier ones; else empty.
  const std::optional<protocol::NextRound>& next_round() const { return next_round_; }
  // A node with a peer port has joined: whether that is to be tried. Then peer_port_tried() is called.
  bool is_to_try(protocol::AgentId agent, std::int64_t now_ms);
  void peer_port_tried(protocol::AgentId agent, bool is_open);
  // Until when the next round waits for peer ports that are being tried; empty: none is awaited.
  std::optional<std::int64_t> peer_ports_awaited_until_ms(std::int64_t now_ms) {
    return peer_ports_.awaited_until_ms(now_ms);
  }
  // The agent is no node of the job any more.
  void forget(protocol::AgentId agent) { peer_ports_.forget(agent); }
  // The agent can be elected when the coordinator leaves with its own node. `offers`: it has a peer port, and an
  // address.
  bool may_transfer_to(protocol::AgentId agent, bool offers, std::int64_t now_ms) const {
    return own_ && agent != own_ && is_sole_leader(now_ms) && can_be_reached(agent, offers);
  }
  // Which of the members of a round, by node rank, may host it; none while votes do not count. Of `members` the agent,
  // its addresses, port and group are given; the rest is filled in here.
  std::vector<protocol::NextLeader> next_leaders(std::vector<NextLeaderCandidate> members) const;

  // Why the coordinator is to resign: its votes are a quorum no more, or it was not elected in time. Empty: it goes on.
  std::string why_over(std::int64_t now_ms) const;
  // When why_over() may change without an event.
  std::optional<std::int64_t> look_again_ms(std::int64_t now_ms) const;
  // Leases are granted now. granted_ms() is how long they may last: 0 for a candidate; empty: without limit.
  void grant(std::int64_t now_ms);
  std::optional<std::int64_t> granted_ms() const { return granted_ms_; }
  // How the keep-alive of a node is answered. `may_renew`: if this coordinator is elected, the node may keep its
  // workers. Empty: not at all.
  std::optional<protocol::Grant> grant_for(bool may_renew) const;

  // Votes count, but of these members only the coordinator's own node can be reached at a peer port.
  bool has_no_next_leader(const std::vector<protocol::AgentId>& members) const;

 private:
  bool is_counting() const { return lease_ || candidate_; }
  std::int64_t candidate_until() const;
  bool is_to_ask(std::int64_t now_ms);
  bool can_be_reached(protocol::AgentId agent, bool offers) const { return offers && peer_ports_.may_be_open(agent); }

  protocol::LeaseTimes times_;
  std::optional<protocol::AgentId> own_;
  std::optional<protocol::NextLeader> own_process_;
  bool own_has_ended_ = false;  // the agent in this process
  // At most one of them; none while votes do not count.
  std::unique_ptr<LeaderLease> lease_;
  std::unique_ptr<Candidate> candidate_;
  std::map<protocol::AgentId, bool> voters_;  // of a candidate: the agents, and whether each was asked once more
  PeerPorts peer_ports_;
  std::optional<protocol::NextRound> next_round_;
  std::int64_t candidate_until_ms_ = 0;
  std::int64_t voted_ms_ = 0;                   // when the last vote came
  std::optional<std::int64_t> alone_since_ms_;  // of a candidate: no node of the round is here
  std::optional<std::int64_t> granted_ms_;
};

}  // namespace elastic::election
