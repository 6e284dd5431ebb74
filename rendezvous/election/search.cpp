#include "rendezvous/election/search.h"

#include <algorithm>
#include <utility>

namespace elastic::election {

using protocol::NextLeader;

namespace {

// Peer ports may redirect an agent to each other: after so many redirects it goes on by itself.
constexpr int kMostHops = 3;

// How often the time to answer doubles.
constexpr int kMostDoublings = 3;

// The pause after a peer port that is not open yet; then twice as long each time, up to NextLeaderDialing::kStepMs.
constexpr std::int64_t kFirstPauseMs = 10;

PeerTarget target_of(const NextLeader& next_leader) {
  return {next_leader.addresses, next_leader.port, next_leader.agent};
}

}  // namespace

// What the search has found is by the places in the old list, and is dropped with it.
void Search::knows(std::vector<NextLeader> next_leaders) {
  is_done_ = false;
  if (next_leaders == next_leaders_) return;
  next_leaders_ = std::move(next_leaders);
  silent_.reset();
  to_probe_.clear();
  to_wait_for_.reset();
  probed_.reset();
  dialing_.reset();
  retry_ms_.reset();
}

// A new start of a node may be found at that node's peer port and by discovery, and other peer ports redirect there. If
// it could not be elected, since others do not reach it, these have their turn before it becomes a candidate again.
bool Search::shuns(protocol::AgentId host) const {
  return host != 0 && host == shunned_ && peer_ports_opened_ <= next_leaders_.size() + 1;
}

void Search::begin(const protocol::LeaseTimes& times, std::int64_t now_ms) {
  // A next leader that campaigned without enough votes, perhaps on the agent's own node, has its turn again when the
  // others, and discovery, had theirs: a coordinator may be there.
  begins_with_ = is_on_ && asked_ == Asked::kNextLeader ? next_leader_ + 1 : 0;
  split_votes_ = is_on_ ? std::min(split_votes_ + 1, kMostDoublings) : 0;
  const bool is_next_leader = std::ranges::find(next_leaders_, host_, &NextLeader::agent) != next_leaders_.end();
  shunned_ = split_votes_ > 0 && !is_next_leader ? host_ : 0;
  peer_ports_opened_ = 0;
  is_on_ = !next_leaders_.empty();
  to_probe_.clear();
  to_wait_for_.reset();
  probed_.reset();
  if (split_votes_ == 0) silent_.reset();
  times_ = times;
  began_ms_ = now_ms;
  asked_ = Asked::kNobody;
  dialing_.reset();
  redirected_to_.reset();
  retry_ms_.reset();
  longest_pause_ms_ = kFirstPauseMs;
  hops_ = 0;
}

// After a split vote, or if the node is done, discovery is probed, too: the process there may be of another start than
// the next leader on that host. Right after a loss that takes too long: discovery is mostly on the lost host.
void Search::probe() {
  to_wait_for_ = silent_;
  probe_those_that_answer();
}

// The lost coordinator's own process is no candidate so soon. A process that campaigned without enough votes, or that a
// node that is done has lost a while ago, may be one again: others make it one.
void Search::probe_those_that_answer() {
  to_probe_.clear();
  const std::size_t discovery_place = next_leaders_.size();
  if ((split_votes_ > 0 || is_done_) && !silent_[discovery_place]) to_probe_.push_back(discovery_place);
  for (std::size_t index = next_leaders_.size(); index-- > 0;) {
    const bool is_lost = split_votes_ == 0 && !is_done_ && next_leaders_[index].agent == host_;
    if (!silent_[index] && !is_lost) to_probe_.push_back(index);
  }
}

// While the agent waited for a silent place, another one may have become a candidate: those that answer are probed once
// more before the next silent one. So the agent looks away from them for one step at most, and a candidate waits longer
// than that.
void Search::was_probed(std::int64_t now_ms) {
  if (!probed_ || now_ms < asked_ms_ + step_ms()) return;
  silent_.set(*probed_);
  probe_those_that_answer();
}

std::optional<PeerTarget> Search::next(std::optional<std::int64_t> free_at_ms, std::int64_t now_ms) {
  was_probed(now_ms);
  asked_ms_ = now_ms;
  const bool is_free = free_at_ms && now_ms >= *free_at_ms;
  bound_until_ms_ = is_free ? std::nullopt : free_at_ms;
  if (redirected_to_) {
    // If nobody is there, the node that redirected the agent may have lost the same coordinator, and not know it yet.
    if (asked_ == Asked::kNextLeader) retry_ms_ = pause_ms();
    asked_ = asked_ == Asked::kNextLeader || asked_ == Asked::kRedirect ? Asked::kRedirect : Asked::kElsewhere;
    return std::exchange(redirected_to_, std::nullopt);
  }
  hops_ = 0;
  if (comes_back(now_ms)) {
    retry_ms_.reset();
    asked_ = Asked::kNextLeader;
    return target_of(next_leaders_[next_leader_]);
  }
  retry_ms_.reset();
  if (!is_on_) {
    asked_ = Asked::kDiscovery;
    return {};
  }
  if (!is_free) {
    const auto lost = std::ranges::find(next_leaders_, host_, &NextLeader::agent);
    const bool turn_of_the_lost = asked_ != Asked::kLost && host_ != 0 && lost != next_leaders_.end();
    asked_ = turn_of_the_lost ? Asked::kLost : Asked::kDiscovery;
    if (!turn_of_the_lost) return {};
    return target_of(*lost);
  }
  const bool begins_to_probe = is_done_ ? has_probed() : !probed_ && split_votes_ > 0;
  if (begins_to_probe) probe();
  probed_.reset();
  for (std::size_t place = 0; to_probe_.empty() && to_wait_for_.any(); ++place) {
    if (!to_wait_for_[place]) continue;
    to_wait_for_.reset(place);
    to_probe_.push_back(place);
  }
  if (!to_probe_.empty()) {
    probed_ = to_probe_.back();
    to_probe_.pop_back();
    silent_.reset(*probed_);
    asked_ = Asked::kElsewhere;
    if (*probed_ == next_leaders_.size()) return {};
    return target_of(next_leaders_[*probed_]);
  }
  // Discovery is one more in the turn, the last.
  if (!dialing_) {
    dialing_.emplace(next_leaders_.size() + 1, times_, now_ms);
    for (std::size_t skipped = 0; skipped < begins_with_; ++skipped) (void)dialing_->dial();
  }
  next_leader_ = dialing_->dial();
  ++peer_ports_opened_;
  next_leader_since_ms_ = now_ms;
  asked_ = next_leader_ < next_leaders_.size() ? Asked::kNextLeader : Asked::kDiscovery;
  if (asked_ == Asked::kDiscovery) return {};
  return target_of(next_leaders_[next_leader_]);
}

bool Search::comes_back(std::int64_t now_ms) const {
  if (!retry_ms_) return false;
  if (asked_ == Asked::kRedirect) return now_ms < next_leader_since_ms_ + times_.renewal_ms();
  // No vote lasts longer than that: the agent at that peer port does not look for a coordinator.
  return asked_ == Asked::kNextLeader && now_ms < next_leader_since_ms_ + times_.loss_timeout_ms;
}

// The pause before a peer port is asked again: its node may learn soon that the coordinator is dead.
std::int64_t Search::pause_ms() {
  return std::exchange(longest_pause_ms_, std::min(2 * longest_pause_ms_, NextLeaderDialing::kStepMs));
}

std::optional<int> Search::rank_of_the_lost() const {
  const auto lost = std::ranges::find(next_leaders_, host_, &NextLeader::agent);
  if (host_ == 0 || lost == next_leaders_.end() || lost->node_rank < 0) return {};
  return lost->node_rank;
}

void Search::sent(const protocol::Redirect& redirect) {
  if (redirect.addresses.empty() && probes()) return;
  if (redirect.addresses.empty()) {
    retry_ms_ = redirect.retry_ms;
    if (is_on_ && retry_ms_) retry_ms_ = std::min(*retry_ms_, pause_ms());
    return;
  }
  if (++hops_ <= kMostHops) redirected_to_ = PeerTarget{redirect.addresses, redirect.port, 0};
}

std::optional<std::int64_t> Search::patience_ms(std::int64_t now_ms) const {
  const bool hurries = is_on_ && (probes() || now_ms < began_ms_ + times_.search_ms());
  if (!hurries) return {};
  return bound_until_ms_ ? std::clamp<std::int64_t>(*bound_until_ms_ - now_ms, 1, step_ms()) : step_ms();
}

// A dead host accepts no connection. A next leader that does is alive, and may be busy: a node that passes it over
// becomes a candidate itself, and splits the vote.
std::optional<std::int64_t> Search::greeting_ms(std::int64_t now_ms) const {
  if (asked_ != Asked::kNextLeader || !patience_ms(now_ms)) return {};
  return times_.renewal_ms();
}

// A welcome takes three round trips. If that is longer than a step, no node finds a candidate: each passes the others
// over and becomes one itself, again and again. So the step doubles with each split vote, up to half of the time that a
// candidate waits for its next vote.
std::int64_t Search::step_ms() const {
  return std::clamp(times_.next_vote_ms() / 2, NextLeaderDialing::kStepMs, NextLeaderDialing::kStepMs << split_votes_);
}

std::optional<std::int64_t> Search::again_at_ms(bool has_refused, std::int64_t now_ms) const {
  if (redirected_to_) return now_ms;
  if (!is_on_) return {};
  const bool rests = is_done_ && has_probed();
  if (probes()) return rests ? std::max(now_ms, asked_ms_ + NextLeaderDialing::kStepMs) : now_ms;
  if (retry_ms_) return now_ms + std::max<std::int64_t>(*retry_ms_, 1);
  if (dialing_) return dialing_->again_at_ms(asked_ms_, has_refused, now_ms);
  // If the lost coordinator's own peer port has refused, the agent is free now.
  if (asked_ == Asked::kLost && has_refused) return now_ms;
  if (now_ms >= began_ms_ + times_.search_ms()) return {};
  // Once the agent is free it asks others, which may wait for its vote.
  const std::int64_t step_over_ms = asked_ms_ + NextLeaderDialing::kStepMs;
  return std::max(now_ms, std::min(step_over_ms, bound_until_ms_.value_or(step_over_ms)));
}

}  // namespace elastic::election
