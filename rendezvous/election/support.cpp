#include "rendezvous/election/support.h"

#include <algorithm>

#include "src/base/check.h"

namespace elastic::election {

using protocol::AgentId;

namespace {

Authority until(std::int64_t end_ms) {
  if (end_ms == Tally::kAlways) return Authority::always();
  return end_ms == Tally::kNever ? Authority::none() : Authority::until(end_ms);
}

}  // namespace

Support::Support(protocol::LeaseTimes times, std::optional<AgentId> own, std::vector<NeededRound> needed)
    : times_(times), own_(own) {
  for (NeededRound& each : needed) base_.push_back({each.round, Tally(std::move(each.electorate))});
}

void Support::promises(AgentId agent, std::int64_t since_ms) {
  std::int64_t& until_ms = promised_until_ms_.try_emplace(agent, Tally::kNever).first->second;
  until_ms = std::max(until_ms, agent == own_ ? Tally::kAlways : since_ms + times_.support_ms());
  in_each_ballot_of(agent, [&](Tally& tally, int rank) { tally.supports(rank, until_ms); });
}

void Support::joins(AgentId agent, const std::vector<KnownRound>& rounds) {
  for (Ballot& ballot : base_) {
    const auto found = std::ranges::find(rounds, ballot.round, &KnownRound::round);
    if (found != rounds.end() && found->rank) seat(ballot, agent, *found->rank);
  }
}

void Support::seat(Ballot& ballot, AgentId agent, int rank) {
  ballot.ranks[agent] = rank;
  ballot.tally.supports(rank, promised_until_ms(agent));
  if (hearers_.contains(agent)) ballot.tally.hears(rank);
}

bool Support::died(AgentId agent, std::int64_t now_ms) {
  if (promised_until_ms(agent) <= now_ms) return false;
  in_each_ballot_of(agent, [](Tally& tally, int rank) { tally.died(rank); });
  return true;
}

void Support::prepare(const Round& round, const std::vector<AgentId>& members) {
  ELASTIC_CHECK(!prepared_);
  prepared_.emplace(round, Tally({round.node_count, TieBreaker::coordinator()}));
  for (int rank = 0; rank < round.node_count; ++rank) {
    seat(*prepared_, members[static_cast<std::size_t>(rank)], rank);
  }
}

void Support::hears(AgentId agent) {
  if (!prepared_) return;
  hearers_.insert(agent);
  in_each_ballot_of(agent, [](Tally& tally, int rank) { tally.hears(rank); });
}

bool Support::may_run(std::int64_t now_ms) const {
  if (!prepared_ || !authority().holds(now_ms)) return false;
  const std::int64_t ends_ms = prepared_->tally.ends_ms();
  if (ends_ms <= now_ms || ends_ms < lent_until_ms_) return false;
  return std::ranges::all_of(base_, [](const Ballot& b) { return b.tally.has_heard(b.round.tie_breaker); });
}

void Support::run(std::int64_t now_ms) {
  ELASTIC_CHECK(may_run(now_ms));
  base_.clear();
  base_.push_back(std::move(*prepared_));
  abandon();
  // Agents come and go for as long as the job runs.
  std::erase_if(promised_until_ms_, [&](const auto& entry) { return entry.second <= now_ms; });
}

void Support::abandon() {
  prepared_.reset();
  hearers_.clear();
  for (Ballot& ballot : base_) ballot.tally.forget_hearers();
}

Authority Support::authority() const {
  // The prepared round does not count: while it has not run nobody can be elected without a quorum of those before it.
  return until(base_ends_ms());
}

std::int64_t Support::base_ends_ms() const {
  std::int64_t ends_ms = Tally::kAlways;
  for (const Ballot& ballot : base_) ends_ms = std::min(ends_ms, ballot.tally.ends_ms());
  return ends_ms;
}

std::int64_t Support::lend_ms(std::int64_t now_ms) {
  const Authority present = authority();
  if (!present.holds(now_ms)) return 0;
  const std::int64_t lent_ms = std::min(times_.lease_ms(), present.good_for_ms(now_ms).value_or(times_.lease_ms()));
  const std::int64_t over_ms = now_ms + times_.ends_ms();
  lent_until_ms_ = std::max(lent_until_ms_, std::min(over_ms, present.ends_ms().value_or(over_ms)));
  return lent_ms;
}

std::vector<Round> Support::before() const {
  std::vector<Round> rounds;
  for (const Ballot& ballot : base_) rounds.push_back(ballot.round);
  return rounds;
}

std::int64_t Support::promised_until_ms(AgentId agent) const {
  const auto found = promised_until_ms_.find(agent);
  return found == promised_until_ms_.end() ? Tally::kNever : found->second;
}

template <class Action>
void Support::in_each_ballot_of(AgentId agent, Action action) {
  const auto in = [&](Ballot& ballot) {
    const auto found = ballot.ranks.find(agent);
    if (found != ballot.ranks.end()) action(ballot.tally, found->second);
  };
  for (Ballot& ballot : base_) in(ballot);
  if (prepared_) in(*prepared_);
}

}  // namespace elastic::election
