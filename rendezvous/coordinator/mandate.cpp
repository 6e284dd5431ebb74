#include "rendezvous/coordinator/mandate.h"

#include <algorithm>
#include <utility>

#include "rendezvous/election/successors.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using protocol::AgentId;
using protocol::KnownRound;
using protocol::Round;
using protocol::Testimony;

namespace {

bool makes_sense(const Round& round) {
  const bool has_nodes = round.node_count >= 1 && round.node_count <= static_cast<int>(limits::kNodesPerJob);
  return has_nodes && (!round.tie_breaker || (*round.tie_breaker >= 0 && *round.tie_breaker < round.node_count));
}

bool makes_sense(const Testimony& testimony, const protocol::LeaseTimes& times) {
  if (testimony.others_may_run_for_ms < 0 || testimony.others_may_run_for_ms > times.over_ms()) return false;
  if (testimony.certificate && !makes_sense(testimony.certificate->round)) return false;
  return std::ranges::all_of(testimony.rounds, [](const KnownRound& known) {
    const bool has_rank = !known.rank || (*known.rank >= 0 && *known.rank < known.round.node_count);
    return makes_sense(known.round) && has_rank;
  });
}

}  // namespace

// A job of one node has nobody else.
void Mandate::follow(const JobSettings& settings, bool has_round, std::int64_t now_ms) {
  const bool counts =
      settings.rules.failover == protocol::JobRules::Failover::kMajority && settings.terms.max_nodes > 1;
  if (counts == is_counting()) return;
  support_.reset();
  candidacy_.reset();
  voters_.clear();
  if (!counts) return;
  support_.emplace(times_, own_);
  if (has_round) stand(now_ms);
}

void Mandate::stand(std::int64_t now_ms) {
  if (!is_counting()) return;
  if (!candidacy_) stands_until_ms_ = now_ms + times_.loss_timeout_ms;
  voted_ms_ = now_ms;
  support_.reset();
  candidacy_.emplace(times_, own_);
  voters_.clear();
}

void Mandate::stand_anew(const membership::Roster& roster, std::int64_t now_ms, Effects& out) {
  stand(now_ms);
  ask(roster, out);
}

void Mandate::ask(const membership::Roster& roster, Effects& out) {
  for (const auto& [agent, node] : roster.nodes()) {
    if (node.session) out.push_back(Ask{*node.session});
  }
}

void Mandate::promises(AgentId agent, const std::optional<Testimony>& testimony, std::int64_t since_ms,
                       std::int64_t now_ms) {
  if (support_) {
    support_->promises(agent, since_ms);
    // It may be a member of the round that was missing until now.
    if (testimony && makes_sense(*testimony, times_)) support_->joins(agent, testimony->rounds);
    return;
  }
  if (!candidacy_) return;
  if (testimony) {
    candidacy_->votes(agent, makes_sense(*testimony, times_) ? *testimony : Testimony{}, since_ms, now_ms);
    voters_[agent] = false;
    voted_ms_ = now_ms;
  } else if (const auto voter = voters_.find(agent); voter != voters_.end() && voter->second) {
    candidacy_->acknowledges(agent, since_ms);
  }
}

void Mandate::died(AgentId agent, std::int64_t now_ms) {
  if (agent == own_) own_has_ended_ = true;
  if (support_) support_->died(agent, now_ms);
}

// True once for each change of the voters.
bool Mandate::is_to_ask(std::int64_t now_ms) {
  const auto is_not_asked = [](const auto& voter) { return !voter.second; };
  if (!candidacy_ || std::ranges::none_of(voters_, is_not_asked) || !candidacy_->has_quorum(now_ms)) return false;
  for (auto& [agent, is_asked] : voters_) is_asked = true;
  stands_until_ms_ = std::max(stands_until_ms_, now_ms + times_.renewal_ms());  // they are to acknowledge it
  return true;
}

std::optional<std::int64_t> Mandate::look(const membership::Roster& roster, std::int64_t now_ms, Effects& out) {
  if (!candidacy_) return {};
  const auto may_vote = [](const auto& entry) { return entry.second.session && entry.second.belongs; };
  if (std::ranges::any_of(roster.nodes(), may_vote)) {
    alone_since_ms_.reset();
  } else if (!alone_since_ms_) {
    alone_since_ms_ = now_ms;
  }
  if (is_to_ask(now_ms)) ask(roster, out);
  auto office = candidacy_->elected(now_ms);
  if (!office) return {};
  support_.emplace(std::move(office->support));
  if (own_has_ended_) support_->died(*own_, now_ms);
  candidacy_.reset();
  voters_.clear();
  out.push_back(Note{"enough nodes of the last round support this coordinator: it acts from now on"});
  return office->others_may_run_until_ms;
}

void Mandate::prepare(const Round& round, const std::vector<AgentId>& members) {
  if (!support_) return;
  abandon();
  if (!support_->before().empty()) next_round_ = protocol::NextRound{round, support_->before()};
  support_->prepare(round, members);
}

void Mandate::hears(AgentId agent) {
  if (support_) support_->hears(agent);
}

bool Mandate::may_run(std::int64_t now_ms) const { return support_ ? support_->may_run(now_ms) : !candidacy_; }

void Mandate::run(std::int64_t now_ms) {
  next_round_.reset();
  if (support_) support_->run(now_ms);
}

void Mandate::abandon() {
  next_round_.reset();
  if (support_) support_->abandon();
}

std::vector<Round> Mandate::before() const { return support_ ? support_->before() : std::vector<Round>{}; }

bool Mandate::may_hand_over(const membership::Roster& roster, std::int64_t now_ms) const {
  return leads(now_ms) && own_ && std::ranges::any_of(roster.nodes(), [&](const auto& entry) {
           const membership::Node& node = entry.second;
           const bool stays = node.session && node.standing() != membership::Standing::kLeaving;
           return node.agent != *own_ && stays && node.seat && can_be_reached(node);
         });
}

bool Mandate::is_to_try(const membership::Node& node, std::int64_t now_ms) {
  const bool has_door = node.door != 0 && !node.addresses.empty();
  return is_counting() && has_door && node.agent != own_ && doors_.is_to_try(node.agent, now_ms);
}

bool Mandate::can_be_reached(const membership::Node& node) const {
  return node.door != 0 && !node.addresses.empty() && doors_.may_be_open(node.agent);
}

bool Mandate::has_no_successor(const std::vector<AgentId>& members) const {
  const auto is_other = [&](AgentId agent) { return agent != own_; };
  const auto can_succeed = [&](AgentId agent) { return is_other(agent) && doors_.is_known_open(agent); };
  return is_counting() && std::ranges::any_of(members, is_other) && std::ranges::none_of(members, can_succeed);
}

std::optional<int> Mandate::host_rank(const std::vector<AgentId>& members) const {
  const auto found = std::ranges::find(members, own_);
  if (!own_ || found == members.end()) return {};
  return static_cast<int>(found - members.begin());
}

std::vector<protocol::Successor> Mandate::successors(const std::vector<AgentId>& members,
                                                     const membership::Roster& roster) const {
  if (!support_) return {};
  std::vector<election::SuccessorCandidate> nodes;
  for (const AgentId agent : members) {
    const membership::Node& node = roster.at(agent);
    nodes.push_back({.node = {.agent = agent,
                              .node_rank = static_cast<int>(nodes.size()),
                              .addresses = node.addresses,
                              .port = node.door},
                     .group = node.group,
                     .can_be_reached = can_be_reached(node),
                     .hosts_coordinator = own_ == agent});
  }
  std::vector<protocol::Successor> chosen = choose_successors(nodes);
  // By it the nodes see that this process is gone, or find the one that is started in its place.
  if (!own_ && own_process_) {
    if (chosen.size() == limits::kSuccessors) chosen.pop_back();
    chosen.push_back(*own_process_);
  }
  return chosen;
}

// When no more votes come, others may have a candidate of their own: the sooner one gives way the sooner the votes
// gather. That of a node which has left again keeps the others from each other all the more: whoever looks for a
// candidate takes this one for it.
std::int64_t Mandate::stands_until() const {
  const std::int64_t until_ms = std::min(stands_until_ms_, voted_ms_ + times_.next_vote_ms());
  return alone_since_ms_ ? std::min(until_ms, *alone_since_ms_ + protocol::LeaseTimes::kConnectMs) : until_ms;
}

std::string Mandate::why_over(std::int64_t now_ms) const {
  if (candidacy_ && now_ms >= stands_until()) {
    return "it was not elected: too few nodes of the last round support it";
  }
  if (support_ && !support_->authority().holds(now_ms + times_.least_ms()))
    return "too few nodes of the last round support it";
  return {};
}

std::optional<std::int64_t> Mandate::look_again_ms(std::int64_t now_ms) const {
  if (candidacy_) return std::max(stands_until(), now_ms + 1);
  if (!support_) return {};
  const auto ends_ms = support_->authority().ends_ms();
  if (!ends_ms || *ends_ms <= now_ms) return {};
  return std::max(*ends_ms - times_.least_ms(), now_ms + 1);
}

void Mandate::lend(std::int64_t now_ms) {
  lent_ms_.reset();
  if (candidacy_) lent_ms_ = 0;
  if (support_) lent_ms_ = support_->lend_ms(now_ms);
}

}  // namespace elastic::coordinator
