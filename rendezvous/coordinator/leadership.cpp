#include "rendezvous/coordinator/leadership.h"

#include <algorithm>
#include <utility>

#include "rendezvous/election/next_leaders.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

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

// A job of one node has no other voter.
void Leadership::follow(const JobSettings& settings, bool has_round, std::int64_t now_ms) {
  const bool counts =
      settings.rules.failover == protocol::JobRules::Failover::kMajority && settings.terms.max_nodes > 1;
  if (counts == is_counting()) return;
  lease_.reset();
  candidate_.reset();
  voters_.clear();
  if (!counts) return;
  lease_.emplace(times_, own_);
  if (has_round) campaign(now_ms);
}

void Leadership::campaign(std::int64_t now_ms) {
  if (!is_counting()) return;
  if (!candidate_) candidate_until_ms_ = now_ms + times_.loss_timeout_ms;
  voted_ms_ = now_ms;
  lease_.reset();
  candidate_.emplace(times_, own_);
  voters_.clear();
}

void Leadership::campaign_anew(const membership::Roster& roster, std::int64_t now_ms, Effects& out) {
  campaign(now_ms);
  ask(roster, out);
}

void Leadership::ask(const membership::Roster& roster, Effects& out) {
  for (const auto& [agent, node] : roster.nodes()) {
    if (node.session) out.push_back(Ask{*node.session});
  }
}

void Leadership::acknowledges(AgentId agent, const std::optional<VoterState>& voter_state, std::int64_t since_ms,
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

void Leadership::died(AgentId agent, std::int64_t now_ms) {
  if (agent == own_) own_has_ended_ = true;
  if (lease_) lease_->died(agent, now_ms);
}

// True once for each change of the voters.
bool Leadership::is_to_ask(std::int64_t now_ms) {
  const auto is_not_asked = [](const auto& voter) { return !voter.second; };
  if (!candidate_ || std::ranges::none_of(voters_, is_not_asked) || !candidate_->has_quorum(now_ms)) return false;
  for (auto& [agent, is_asked] : voters_) is_asked = true;
  candidate_until_ms_ = std::max(candidate_until_ms_, now_ms + times_.renewal_ms());  // time for the acks
  return true;
}

std::optional<std::int64_t> Leadership::count_votes(const membership::Roster& roster, std::int64_t now_ms,
                                                    Effects& out) {
  if (!candidate_) return {};
  const auto may_vote = [](const auto& entry) { return entry.second.session && entry.second.belongs; };
  if (std::ranges::any_of(roster.nodes(), may_vote)) {
    alone_since_ms_.reset();
  } else if (!alone_since_ms_) {
    alone_since_ms_ = now_ms;
  }
  if (is_to_ask(now_ms)) ask(roster, out);
  auto elected = candidate_->elected(now_ms);
  if (!elected) return {};
  lease_.emplace(std::move(elected->lease));
  if (own_has_ended_) lease_->died(*own_, now_ms);
  candidate_.reset();
  voters_.clear();
  out.push_back(Note{"enough nodes of the last round support this coordinator: it acts from now on"});
  return elected->others_may_run_until_ms;
}

void Leadership::prepare(const Round& round, const std::vector<AgentId>& members) {
  if (!lease_) return;
  abandon();
  if (!lease_->before().empty()) next_round_ = protocol::NextRound{round, lease_->before()};
  lease_->prepare(round, members);
}

void Leadership::hears(AgentId agent) {
  if (lease_) lease_->hears(agent);
}

bool Leadership::may_run(std::int64_t now_ms) const { return lease_ ? lease_->may_run(now_ms) : !candidate_; }

void Leadership::run(std::int64_t now_ms) {
  next_round_.reset();
  if (lease_) lease_->run(now_ms);
}

void Leadership::abandon() {
  next_round_.reset();
  if (lease_) lease_->abandon();
}

std::vector<Round> Leadership::before() const { return lease_ ? lease_->before() : std::vector<Round>{}; }

bool Leadership::may_transfer_leadership(const membership::Roster& roster, std::int64_t now_ms) const {
  return leads(now_ms) && own_ && std::ranges::any_of(roster.nodes(), [&](const auto& entry) {
           const membership::Node& node = entry.second;
           const bool stays = node.session && node.member_state() != membership::MemberState::kLeaving;
           return node.agent != *own_ && stays && node.slot && can_be_reached(node);
         });
}

bool Leadership::is_to_try(const membership::Node& node, std::int64_t now_ms) {
  const bool has_peer_server = node.peer_port != 0 && !node.addresses.empty();
  return is_counting() && has_peer_server && node.agent != own_ && peer_ports_.is_to_try(node.agent, now_ms);
}

bool Leadership::can_be_reached(const membership::Node& node) const {
  return node.peer_port != 0 && !node.addresses.empty() && peer_ports_.may_be_open(node.agent);
}

bool Leadership::has_no_next_leader(const std::vector<AgentId>& members) const {
  const auto is_other = [&](AgentId agent) { return agent != own_; };
  const auto can_succeed = [&](AgentId agent) { return is_other(agent) && peer_ports_.is_known_open(agent); };
  return is_counting() && std::ranges::any_of(members, is_other) && std::ranges::none_of(members, can_succeed);
}

std::optional<int> Leadership::host_rank(const std::vector<AgentId>& members) const {
  const auto found = std::ranges::find(members, own_);
  if (!own_ || found == members.end()) return {};
  return static_cast<int>(found - members.begin());
}

std::vector<protocol::NextLeader> Leadership::next_leaders(const std::vector<AgentId>& members,
                                                           const membership::Roster& roster) const {
  if (!lease_) return {};
  std::vector<election::NextLeaderCandidate> nodes;
  for (const AgentId agent : members) {
    const membership::Node& node = roster.at(agent);
    nodes.push_back({.node = {.agent = agent,
                              .node_rank = static_cast<int>(nodes.size()),
                              .addresses = node.addresses,
                              .port = node.peer_port},
                     .group = node.group,
                     .can_be_reached = can_be_reached(node),
                     .hosts_coordinator = own_ == agent});
  }
  std::vector<protocol::NextLeader> chosen = choose_next_leaders(nodes);
  // By it nodes see that this process is gone, or find the one that is started in its place.
  if (!own_ && own_process_) {
    if (chosen.size() == limits::kNextLeaders) chosen.pop_back();
    chosen.push_back(*own_process_);
  }
  return chosen;
}

// When no more votes come, others may have a candidate of their own: the sooner this one resigns, the sooner the votes
// gather. A candidate that its voters have left hinders them even more, since nodes that look for a candidate find it.
std::int64_t Leadership::candidate_until() const {
  const std::int64_t until_ms = std::min(candidate_until_ms_, voted_ms_ + times_.next_vote_ms());
  return alone_since_ms_ ? std::min(until_ms, *alone_since_ms_ + protocol::LeaseTimes::kConnectMs) : until_ms;
}

std::string Leadership::why_over(std::int64_t now_ms) const {
  if (candidate_ && now_ms >= candidate_until()) {
    return "it was not elected: too few nodes of the last round support it";
  }
  if (lease_ && !lease_->authority().holds(now_ms + times_.least_ms()))
    return "too few nodes of the last round support it";
  return {};
}

std::optional<std::int64_t> Leadership::look_again_ms(std::int64_t now_ms) const {
  if (candidate_) return std::max(candidate_until(), now_ms + 1);
  if (!lease_) return {};
  const auto ends_ms = lease_->authority().ends_ms();
  if (!ends_ms || *ends_ms <= now_ms) return {};
  return std::max(*ends_ms - times_.least_ms(), now_ms + 1);
}

void Leadership::grant(std::int64_t now_ms) {
  granted_ms_.reset();
  if (candidate_) granted_ms_ = 0;
  if (lease_) granted_ms_ = lease_->grant_ms(now_ms);
}

}  // namespace elastic::coordinator
