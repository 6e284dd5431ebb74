#include "rendezvous/election/leader.h"

#include <algorithm>
#include <utility>

#include "rendezvous/election/candidate.h"
#include "rendezvous/election/leader_lease.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::election {

using protocol::AgentId;
using protocol::KnownRound;
using protocol::Round;
using protocol::VoterState;

namespace {

bool makes_sense(const Round& round) {
  const bool has_nodes = round.node_count >= 1 && round.node_count <= static_cast<int>(limits::kNodesPerJob);
  return has_nodes && (!round.tie_breaker || (*round.tie_breaker >= 0 && *round.tie_breaker < round.node_count));
}

bool makes_sense(const VoterState& voter_state, const protocol::LeaseTimes& times) {
  if (voter_state.others_may_run_for_ms < 0 || voter_state.others_may_run_for_ms > times.over_ms()) return false;
  if (voter_state.witnessed_death && !makes_sense(voter_state.witnessed_death->round)) return false;
  return std::ranges::all_of(voter_state.rounds, [](const KnownRound& known) {
    const bool has_rank = !known.rank || (*known.rank >= 0 && *known.rank < known.round.node_count);
    return makes_sense(known.round) && has_rank;
  });
}

}  // namespace

Leader::Leader(protocol::LeaseTimes times, std::optional<AgentId> own, std::optional<protocol::NextLeader> own_process)
    : times_(times), own_(own), own_process_(std::move(own_process)) {}

Leader::Leader(Leader&&) noexcept = default;

Leader::~Leader() = default;

void Leader::follow(bool counts_votes, bool has_round, std::int64_t now_ms) {
  if (counts_votes == is_counting()) return;
  lease_.reset();
  candidate_.reset();
  voters_.clear();
  if (!counts_votes) return;
  lease_ = std::make_unique<LeaderLease>(times_, own_);
  if (has_round) campaign(now_ms);
}

void Leader::campaign(std::int64_t now_ms) {
  if (!is_counting()) return;
  if (!candidate_) candidate_until_ms_ = now_ms + times_.loss_timeout_ms;
  voted_ms_ = now_ms;
  lease_.reset();
  candidate_ = std::make_unique<Candidate>(times_, own_);
  voters_.clear();
}

bool Leader::lacks_votes(std::int64_t now_ms) const { return candidate_ && !candidate_->has_quorum(now_ms); }

bool Leader::needs_votes() const { return lease_ && !lease_->before().empty(); }

bool Leader::is_sole_leader(std::int64_t now_ms) const { return needs_votes() && lease_->authority().holds(now_ms); }

void Leader::acknowledges(AgentId agent, const std::optional<VoterState>& voter_state, std::int64_t since_ms,
                          std::int64_t now_ms) {
  if (lease_) {
    lease_->acknowledges(agent, since_ms);
    // The agent may be a member of the round that was missing until now.
    if (voter_state && makes_sense(*voter_state, times_)) lease_->joins(agent, voter_state->rounds);
    return;
  }
  if (!candidate_) return;
  if (voter_state) {
    candidate_->votes(agent, makes_sense(*voter_state, times_) ? *voter_state : VoterState{}, since_ms, now_ms);
    voters_[agent] = false;
    voted_ms_ = now_ms;
  } else if (const auto voter = voters_.find(agent); voter != voters_.end() && voter->second) {
    candidate_->acknowledges(agent, since_ms);
  }
}

void Leader::died(AgentId agent, std::int64_t now_ms) {
  if (agent == own_) own_has_ended_ = true;
  if (lease_) lease_->died(agent, now_ms);
}

// True once for each change of the voters.
bool Leader::is_to_ask(std::int64_t now_ms) {
  const auto is_not_asked = [](const auto& voter) { return !voter.second; };
  if (!candidate_ || std::ranges::none_of(voters_, is_not_asked) || !candidate_->has_quorum(now_ms)) return false;
  for (auto& [agent, is_asked] : voters_) is_asked = true;
  candidate_until_ms_ = std::max(candidate_until_ms_, now_ms + times_.renewal_ms());  // time for the acks
  return true;
}

Leader::Count Leader::count_votes(bool has_voters, std::int64_t now_ms) {
  if (!candidate_) return {};
  if (has_voters) {
    alone_since_ms_.reset();
  } else if (!alone_since_ms_) {
    alone_since_ms_ = now_ms;
  }
  Count count{.asks = is_to_ask(now_ms)};
  auto elected = candidate_->elected(now_ms);
  if (!elected) return count;
  lease_ = std::make_unique<LeaderLease>(std::move(elected->lease));
  if (own_has_ended_) lease_->died(*own_, now_ms);
  candidate_.reset();
  voters_.clear();
  count.others_may_run_until_ms = elected->others_may_run_until_ms;
  return count;
}

Leader::Begun Leader::begin_round(Round round, const std::vector<NextLeaderCandidate>& members) {
  Begun begun;
  std::vector<AgentId> agents;
  for (const NextLeaderCandidate& member : members) {
    if (member.node.agent == own_) begun.host_rank = static_cast<int>(agents.size());
    agents.push_back(member.node.agent);
  }
  if (!lease_) return begun;
  abandon();
  begun.before = lease_->before();
  begun.leaders = next_leaders(members);
  round.tie_breaker = begun.host_rank;
  if (!begun.before.empty()) next_round_ = protocol::NextRound{round, begun.before};
  lease_->prepare(round, agents);
  return begun;
}

void Leader::hears(AgentId agent) {
  if (lease_) lease_->hears(agent);
}

bool Leader::run(std::int64_t now_ms) {
  if (candidate_ || (lease_ && !lease_->may_run(now_ms))) return false;
  next_round_.reset();
  if (lease_) lease_->run(now_ms);
  return true;
}

void Leader::abandon() {
  next_round_.reset();
  if (lease_) lease_->abandon();
}

bool Leader::is_to_try(AgentId agent, std::int64_t now_ms) {
  return is_counting() && agent != own_ && peer_ports_.is_to_try(agent, now_ms);
}

void Leader::peer_port_tried(AgentId agent, bool is_open) {
  is_open ? peer_ports_.is_open(agent) : peer_ports_.is_shut(agent);
}

bool Leader::has_no_next_leader(const std::vector<AgentId>& members) const {
  const auto is_other = [&](AgentId agent) { return agent != own_; };
  const auto can_succeed = [&](AgentId agent) { return is_other(agent) && peer_ports_.is_known_open(agent); };
  return is_counting() && std::ranges::any_of(members, is_other) && std::ranges::none_of(members, can_succeed);
}

std::vector<protocol::NextLeader> Leader::next_leaders(std::vector<NextLeaderCandidate> members) const {
  if (!lease_) return {};
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    NextLeaderCandidate& member = members[rank];
    member.node.node_rank = static_cast<int>(rank);
    member.can_be_reached = can_be_reached(member.node.agent, member.node.port != 0 && !member.node.addresses.empty());
    member.hosts_coordinator = own_ == member.node.agent;
  }
  std::vector<protocol::NextLeader> chosen = choose_next_leaders(members);
  // By it nodes see that this process is gone, or find the one that is started in its place.
  if (!own_ && own_process_) {
    if (chosen.size() == limits::kNextLeaders) chosen.pop_back();
    chosen.push_back(*own_process_);
  }
  return chosen;
}

// When no more votes come, others may have a candidate of their own: the sooner this one resigns, the sooner the votes
// gather. A candidate that its voters have left hinders them even more, since nodes that look for a candidate find it.
std::int64_t Leader::candidate_until() const {
  const std::int64_t until_ms = std::min(candidate_until_ms_, voted_ms_ + times_.next_vote_ms());
  return alone_since_ms_ ? std::min(until_ms, *alone_since_ms_ + protocol::LeaseTimes::kConnectMs) : until_ms;
}

std::string Leader::why_over(std::int64_t now_ms) const {
  if (candidate_ && now_ms >= candidate_until()) {
    return "it was not elected: too few nodes of the last round support it";
  }
  if (lease_ && !lease_->authority().holds(now_ms + times_.least_ms()))
    return "too few nodes of the last round support it";
  return {};
}

std::optional<std::int64_t> Leader::look_again_ms(std::int64_t now_ms) const {
  if (candidate_) return std::max(candidate_until(), now_ms + 1);
  if (!lease_) return {};
  const auto ends_ms = lease_->authority().ends_ms();
  if (!ends_ms || *ends_ms <= now_ms) return {};
  return std::max(*ends_ms - times_.least_ms(), now_ms + 1);
}

void Leader::grant(std::int64_t now_ms) {
  granted_ms_.reset();
  if (candidate_) granted_ms_ = 0;
  if (lease_) granted_ms_ = lease_->grant_ms(now_ms);
}

std::optional<protocol::Grant> Leader::grant_for(bool may_renew) const {
  if (may_renew && may_act()) return protocol::Grant{granted_ms_, is_counting()};
  if (is_counting()) return protocol::Grant{.good_for_ms = 0, .asks_vote = true, .is_lease = false};
  return {};
}

}  // namespace elastic::election
