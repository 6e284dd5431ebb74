#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/coordinator/job_settings.h"
#include "rendezvous/coordinator/peer_ports.h"
#include "rendezvous/election/candidate.h"
#include "rendezvous/election/leader_lease.h"
#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Whether the coordinator may act for its job. Either nobody needs to be asked: failover=off. Or it needs the promises
// of a quorum of the last round (docs/failover.md): it has them from the first as long as no round has run, or is
// elected by them when it takes a job over. Times are milliseconds of the coordinator's clock.
class Leadership {
 public:
  explicit Leadership(const CoordinatorConfig& config)
      : times_(config.lease), own_(config.own_agent), own_process_(config.own_process) {}

  // Another node can be elected in place of this coordinator, which acts by promises and is told to leave.
  bool may_transfer(const membership::Roster& roster, std::int64_t now_ms) const;

  // The job has these settings: they say whether promises count. `has_round`: it has run, or may have.
  void follow(const JobSettings& settings, bool has_round, std::int64_t now_ms);
  // The job has run already: this coordinator needs to be elected, within a loss timeout.
  void campaign(std::int64_t now_ms);
  // The term of the coordinator has changed while it stands: promises to the earlier one count no more.
  void campaign_anew(const membership::Roster& roster, std::int64_t now_ms, Effects& out);
  bool is_counting() const { return lease_ || candidate_; }
  bool is_candidate() const { return candidate_.has_value(); }
  // It stands, and those who have voted are no quorum.
  bool lacks_votes(std::int64_t now_ms) const { return candidate_ && !candidate_->has_quorum(now_ms); }
  // Promises count, and it has those that it needs for a round that has run: no other coordinator may.
  bool leads(std::int64_t now_ms) const {
    return lease_ && !lease_->before().empty() && lease_->authority().holds(now_ms);
  }

  // The agent supports this coordinator: it has acknowledged the KEPT that was sent at `since_ms`. With its first
  // promise to a coordinator comes its testimony; one that makes no sense counts as an empty one.
  void acknowledges(protocol::AgentId agent, const std::optional<protocol::VoterState>& voter_state,
                    std::int64_t since_ms, std::int64_t now_ms);
  // Its process has ended.
  void died(protocol::AgentId agent, std::int64_t now_ms);

  // Called after each event. When the voters are a quorum, each is asked once more, by a KEPT that lends nothing. When
  // the coordinator is elected by that, returns until when workers may run on nodes that do not come, under leases of
  // the coordinator before; nothing if it does not stand, or is not elected yet.
  std::optional<std::int64_t> look(const membership::Roster& roster, std::int64_t now_ms, Effects& out);

  // The coordinator prepares a round of these agents, by node rank. One that was prepared before and has not run never
  // will.
  void prepare(const protocol::Round& round, const std::vector<protocol::AgentId>& members);
  // The agent has heard of it.
  void hears(protocol::AgentId agent);
  // Its workers may be started.
  bool may_run(std::int64_t now_ms) const;
  // They are started.
  void run(std::int64_t now_ms);
  // It will never run.
  void abandon();
  // For PrepareRound.
  std::vector<protocol::Round> before() const;
  // While a round is prepared that needs a quorum of earlier ones: what nodes are told that are not in it.
  const std::optional<protocol::NextRound>& next_round() const { return next_round_; }
  // The node rank of the node that hosts the coordinator; nothing: it is on none of these nodes.
  std::optional<int> host_rank(const std::vector<protocol::AgentId>& members) const;
  // A node has joined: whether its door is to be tried.
  bool is_to_try(const membership::Node& node, std::int64_t now_ms);
  PeerPorts& peer_ports() { return peer_ports_; }
  // Who of these may host the coordinator after this one; nobody while promises do not count.
  std::vector<protocol::NextLeader> next_leaders(const std::vector<protocol::AgentId>& members,
                                                 const membership::Roster& roster) const;

  // Why the coordinator is to resign: its promises are no quorum any more, or it was not elected in time. Empty: it may
  // go on.
  std::string why_over(std::int64_t now_ms) const;
  // When that may change by itself.
  std::optional<std::int64_t> look_again_ms(std::int64_t now_ms) const;
  // Leases are granted now. granted_ms() is how long they may last; nothing: there is no limit. 0 while it stands.
  void grant(std::int64_t now_ms);
  std::optional<std::int64_t> granted_ms() const { return granted_ms_; }

  // Promises count, but none of these members but the coordinator's own node can be reached where it would host the
  // coordinator.
  bool has_no_next_leader(const std::vector<protocol::AgentId>& members) const;

 private:
  std::int64_t candidate_until() const;
  bool is_to_ask(std::int64_t now_ms);
  bool can_be_reached(const membership::Node& node) const;
  static void ask(const membership::Roster& roster, Effects& out);

  protocol::LeaseTimes times_;
  std::optional<protocol::AgentId> own_;
  std::optional<protocol::NextLeader> own_process_;
  bool own_has_ended_ = false;  // the agent in this process
  // At most one of them; none while nobody needs to be asked.
  std::optional<election::LeaderLease> lease_;
  std::optional<election::Candidate> candidate_;
  std::map<protocol::AgentId, bool> voters_;  // while it stands: the agent, and whether it was asked once more
  PeerPorts peer_ports_;
  std::optional<protocol::NextRound> next_round_;
  std::int64_t candidate_until_ms_ = 0;
  std::int64_t voted_ms_ = 0;                   // when the last vote came
  std::optional<std::int64_t> alone_since_ms_;  // while it stands: no node of the round is here
  std::optional<std::int64_t> granted_ms_;
};

}  // namespace elastic::coordinator
