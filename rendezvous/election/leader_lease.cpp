#include "rendezvous/election/leader_lease.h"

#include <algorithm>

#include "src/base/check.h"

namespace elastic::election {

using protocol::AgentId;

namespace {

Authority until(std::int64_t end_ms) {
  if (end_ms == QuorumTracker::kAlways) return Authority::always();
  return end_ms == QuorumTracker::kNever ? Authority::none() : Authority::until(end_ms);
}

}  // namespace

LeaderLease::LeaderLease(protocol::LeaseTimes times, std::optional<AgentId> own, std::vector<NeededRound> needed)
    : times_(times), own_(own) {
  for (NeededRound& each : needed) base_.push_back({each.round, QuorumTracker(std::move(each.voter_set))});
}

void LeaderLease::acknowledges(AgentId agent, std::int64_t since_ms) {
  std::int64_t& until_ms = voted_until_ms_.try_emplace(agent, QuorumTracker::kNever).first->second;
  until_ms = std::max(until_ms, agent == own_ ? QuorumTracker::kAlways : since_ms + times_.counted_vote_ms());
  in_each_ballot_of(agent,
                    [&](QuorumTracker& quorum_tracker, int rank) { quorum_tracker.votes_until(rank, until_ms); });
}

void LeaderLease::joins(AgentId agent, const std::vector<KnownRound>& rounds) {
  for (Ballot& ballot : base_) {
    const auto found = std::ranges::find(rounds, ballot.round, &KnownRound::round);
    if (found != rounds.end() && found->rank) place(ballot, agent, *found->rank);
  }
}

void LeaderLease::place(Ballot& ballot, AgentId agent, int rank) {
  ballot.ranks[agent] = rank;
  ballot.quorum_tracker.votes_until(rank, voted_until_ms(agent));
  if (hearers_.contains(agent)) ballot.quorum_tracker.hears(rank);
}

bool LeaderLease::died(AgentId agent, std::int64_t now_ms) {
  if (voted_until_ms(agent) <= now_ms) return false;
  in_each_ballot_of(agent, [](QuorumTracker& quorum_tracker, int rank) { quorum_tracker.died(rank); });
  return true;
}

void LeaderLease::prepare(const Round& round, const std::vector<AgentId>& members) {
  ELASTIC_CHECK(!prepared_);
  prepared_.emplace(round, QuorumTracker({round.node_count, TieBreaker::coordinator()}));
  for (int rank = 0; rank < round.node_count; ++rank) {
    place(*prepared_, members[static_cast<std::size_t>(rank)], rank);
  }
}

void LeaderLease::hears(AgentId agent) {
  if (!prepared_) return;
  hearers_.insert(agent);
  in_each_ballot_of(agent, [](QuorumTracker& quorum_tracker, int rank) { quorum_tracker.hears(rank); });
}

bool LeaderLease::may_run(std::int64_t now_ms) const {
  if (!prepared_ || !authority().holds(now_ms)) return false;
  const std::int64_t ends_ms = prepared_->quorum_tracker.ends_ms();
  if (ends_ms <= now_ms || ends_ms < granted_until_ms_) return false;
  return std::ranges::all_of(base_, [](const Ballot& b) { return b.quorum_tracker.has_heard(b.round.tie_breaker); });
}

void LeaderLease::run(std::int64_t now_ms) {
  ELASTIC_CHECK(may_run(now_ms));
  base_.clear();
  base_.push_back(std::move(*prepared_));
  abandon();
  // Votes that have ended are dropped, since agents come and go for as long as the job runs.
  std::erase_if(voted_until_ms_, [&](const auto& entry) { return entry.second <= now_ms; });
}

void LeaderLease::abandon() {
  prepared_.reset();
  hearers_.clear();
  for (Ballot& ballot : base_) ballot.quorum_tracker.forget_hearers();
}

Authority LeaderLease::authority() const {
  // The prepared round does not count: until it runs, an election needs a quorum of the rounds before it.
  return until(base_ends_ms());
}

std::int64_t LeaderLease::base_ends_ms() const {
  std::int64_t ends_ms = QuorumTracker::kAlways;
  for (const Ballot& ballot : base_) ends_ms = std::min(ends_ms, ballot.quorum_tracker.ends_ms());
  return ends_ms;
}

std::int64_t LeaderLease::grant_ms(std::int64_t now_ms) {
  const Authority present = authority();
  if (!present.holds(now_ms)) return 0;
  const std::int64_t granted_ms = std::min(times_.lease_ms(), present.good_for_ms(now_ms).value_or(times_.lease_ms()));
  const std::int64_t over_ms = now_ms + times_.ends_ms();
  granted_until_ms_ = std::max(granted_until_ms_, std::min(over_ms, present.ends_ms().value_or(over_ms)));
  return granted_ms;
}

std::vector<Round> LeaderLease::before() const {
  std::vector<Round> rounds;
  for (const Ballot& ballot : base_) rounds.push_back(ballot.round);
  return rounds;
}

std::int64_t LeaderLease::voted_until_ms(AgentId agent) const {
  const auto found = voted_until_ms_.find(agent);
  return found == voted_until_ms_.end() ? QuorumTracker::kNever : found->second;
}

template <class Action>
void LeaderLease::in_each_ballot_of(AgentId agent, Action action) {
  const auto in = [&](Ballot& ballot) {
    const auto found = ballot.ranks.find(agent);
    if (found != ballot.ranks.end()) action(ballot.quorum_tracker, found->second);
  };
  for (Ballot& ballot : base_) in(ballot);
  if (prepared_) in(*prepared_);
}

}  // namespace elastic::election
