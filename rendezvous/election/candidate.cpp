#include "rendezvous/election/candidate.h"

#include <algorithm>
#include <utility>

namespace elastic::election {

using protocol::AgentId;

namespace {

const KnownRound* find(const VoterState& voter_state, const Round& round) {
  const auto found = std::ranges::find(voter_state.rounds, round, &KnownRound::round);
  return found == voter_state.rounds.end() ? nullptr : &*found;
}

}  // namespace

void Candidate::votes(AgentId agent, VoterState voter_state, std::int64_t since_ms, std::int64_t now_ms) {
  const std::int64_t others_may_run_until_ms = now_ms + voter_state.others_may_run_for_ms;
  votes_[agent] = {std::move(voter_state), since_ms, others_may_run_until_ms, agent == own_};
}

void Candidate::acknowledges(AgentId agent, std::int64_t since_ms) {
  const auto found = votes_.find(agent);
  if (found == votes_.end()) return;
  found->second.since_ms = std::max(found->second.since_ms, since_ms);
  found->second.is_acknowledged = true;
}

bool Candidate::has_quorum(std::int64_t now_ms) const { return needed(present(now_ms, false)).has_value(); }

std::optional<Candidate::Elected> Candidate::elected(std::int64_t now_ms) const {
  const Votes votes = present(now_ms, true);
  std::optional<std::vector<NeededRound>> rounds = needed(votes);
  if (!rounds) return {};
  Elected elected{LeaderLease(times_, own_, std::move(*rounds)), now_ms};
  for (const auto& [agent, vote] : votes) {
    elected.lease.acknowledges(agent, vote->since_ms);
    elected.lease.joins(agent, vote->voter_state.rounds);
    elected.others_may_run_until_ms = std::max(elected.others_may_run_until_ms, vote->others_may_run_until_ms);
  }
  return elected;
}

// The rounds whose quorums make the candidate the coordinator; empty if the votes are not a quorum of each.
std::optional<std::vector<NeededRound>> Candidate::needed(const Votes& votes) const {
  // The rounds that may be the last one, as known to the voter that has heard of the latest.
  const Vote* best = nullptr;
  for (const auto& [agent, vote] : votes) {
    const auto& rounds = vote->voter_state.rounds;
    if (!rounds.empty() && (!best || rounds.back().round > best->voter_state.rounds.back().round)) best = vote;
  }
  if (!best) return {};
  std::vector<Round> last;
  for (const KnownRound& known : best->voter_state.rounds) last.push_back(known.round);
  const int smallest = std::ranges::min(last, {}, &Round::node_count).node_count;
  if (2 * static_cast<int>(votes.size()) < smallest - 1) return {};  // no quorum, even with a witnessed death

  const auto has_run = [&](const Round& round) {
    return std::ranges::any_of(votes, [&](const auto& entry) {
      const KnownRound* known = find(entry.second->voter_state, round);
      return known && known->has_run;
    });
  };
  const auto are_quorum = [&](const Round& round, auto counts) {
    std::vector<int> ranks;
    for (const auto& [agent, vote] : votes) {
      const KnownRound* known = find(vote->voter_state, round);
      if (known && known->rank && counts(vote->voter_state)) ranks.push_back(*known->rank);
    }
    return voter_set_of(round, votes).is_quorum(ranks);
  };

  // Until a round has run, the coordinator that began the job needs no votes, and may run another round than this one.
  if (last.size() == 1 && !has_run(last.front())) return {};
  // A quorum of each earlier round hears of a round before it runs. So the latest round has not run, and never will, if
  // a quorum of an earlier one has not heard of it and votes for this candidate now.
  while (last.size() > 1 && !has_run(last.back())) {
    const auto is_deaf = [&](const VoterState& voter_state) {
      return voter_state.rounds.back().round < last.back() || !find(voter_state, last.back());
    };
    const bool is_dead = std::ranges::any_of(last.begin(), last.end() - 1,
                                             [&](const Round& before) { return are_quorum(before, is_deaf); });
    if (!is_dead) break;
    last.pop_back();
  }
  // What has run makes all earlier rounds void.
  const auto ran = std::ranges::find_if(last.rbegin(), last.rend(), has_run);
  if (ran != last.rend()) last.erase(last.begin(), std::prev(ran.base()));

  // The new coordinator will prepare one more.
  if (last.size() >= kMostLastRounds) return {};

  std::vector<NeededRound> needed;
  for (const Round& round : last) {
    if (!are_quorum(round, [](const VoterState&) { return true; })) return {};
    needed.push_back({round, voter_set_of(round, votes)});
  }
  return needed;
}

// The votes that have not ended.
Candidate::Votes Candidate::present(std::int64_t now_ms, bool acknowledged_only) const {
  Votes votes;
  for (const auto& [agent, vote] : votes_) {
    const bool holds = agent == own_ || now_ms < vote.since_ms + times_.counted_vote_ms();
    if (holds && (vote.is_acknowledged || !acknowledged_only)) votes.emplace_back(agent, &vote);
  }
  return votes;
}

// The round's voter set, by the voter states. Of two witnessed deaths, that of the later coordinator counts.
VoterSet Candidate::voter_set_of(const Round& round, const Votes& votes) const {
  const WitnessedDeath* witnessed_death = nullptr;
  for (const auto& [agent, vote] : votes) {
    const auto& own = vote->voter_state.witnessed_death;
    if (own && own->round == round && (!witnessed_death || own->term > witnessed_death->term)) witnessed_death = &*own;
  }
  VoterSet voter_set(round.node_count, round.tie_breaker ? TieBreaker::node(*round.tie_breaker) : TieBreaker::nobody());
  if (witnessed_death) voter_set.strike_off(witnessed_death->rank);
  return voter_set;
}

}  // namespace elastic::election
