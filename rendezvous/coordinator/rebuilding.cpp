#include "rendezvous/coordinator/rebuilding.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using protocol::AgentFacts;
using protocol::AgentId;

namespace {

// The ranks of the nodes of the round that have reported and are connected.
std::vector<int> connected_ranks(const Rebuilding::View& view) {
  std::vector<int> ranks;
  for (const Seat& seat : view.seats) {
    const auto found = view.roster.nodes().find(seat.agent);
    if (found != view.roster.nodes().end() && found->second.session) ranks.push_back(seat.seat);
  }
  return ranks;
}

// Of how many empty nodes all orders are tried.
constexpr std::size_t kMostEmpty = 4;

}  // namespace

void Rebuilding::begin(const AgentFacts& facts, const protocol::LeaseTimes& lease, std::int64_t now_ms) {
  round_ = Round{.term = facts.carried.term(),
                 .number = facts.round,
                 .incarnation = facts.incarnation,
                 .membership = facts.membership,
                 .node_count = facts.place.node_count,
                 .lease = lease,
                 .until_ms = now_ms + lease.all_back_ms()};
  empty_.clear();
}

bool Rebuilding::is_later(const AgentFacts& facts) const {
  if (!round_) return true;
  return !is_of_round(facts) && std::pair(facts.carried.term(), facts.round) > std::pair(round_->term, round_->number);
}

bool Rebuilding::is_of_round(const AgentFacts& facts) const {
  return round_ && facts.incarnation == round_->incarnation && facts.round == round_->number &&
         facts.membership == round_->membership;
}

void Rebuilding::is_reported(const AgentFacts& facts) { round_->term = std::max(round_->term, facts.carried.term()); }

void Rebuilding::comes_back(AgentFacts::Activity activity) {
  using Activity = AgentFacts::Activity;
  if (activity == Activity::kRunning || activity == Activity::kPreparing) round_->is_latest = true;
}

void Rebuilding::elected(std::int64_t others_may_run_until_ms, std::int64_t now_ms) {
  if (!round_) return;
  round_->has_quorum = true;
  // One that the others may have elected instead, and that only its own node supports, gives up before it comes. Where
  // workers may run all the same until their leases are over, nothing is lost by waiting for it. After a silence all
  // leases are over, and workers are only still to be killed.
  const bool may_run = others_may_run_until_ms > now_ms + protocol::LeaseTimes::kKillMs;
  const std::int64_t other_candidate_ms = may_run ? round_->lease.next_vote_ms() : 0;
  round_->until_ms = std::max(others_may_run_until_ms, now_ms + other_candidate_ms + protocol::LeaseTimes::kFindMs);
}

// Every node of the round that has not come back is known to be empty.
bool Rebuilding::are_others_empty(const Seats& seats) const {
  const auto size = static_cast<std::size_t>(round_->node_count);
  std::vector<AgentId> missing;
  for (const AgentId agent : empty_) {
    if (!has_seat(seats, agent)) missing.push_back(agent);
  }
  if (missing.empty() || missing.size() > kMostEmpty || seats.size() + missing.size() != size) return false;
  // The digest shows that they were in it; which of them had which rank is not known.
  do {
    std::vector<AgentId> agents(size);
    for (const Seat& seat : seats) agents[static_cast<std::size_t>(seat.seat) % size] = seat.agent;
    auto next = missing.begin();
    for (AgentId& agent : agents) {
      if (agent == 0 && next != missing.end()) agent = *next++;
    }
    if (membership_digest(round_->incarnation, round_->number, agents) == round_->membership) return true;
  } while (std::ranges::next_permutation(missing).found);
  return false;
}

Rebuilding::Decision Rebuilding::decide(const View& view) {
  using Kind = Decision::Kind;
  ELASTIC_CHECK(round_);
  const bool is_complete = static_cast<int>(view.seats.size()) == round_->node_count;
  const bool are_all_here = is_complete && connected_ranks(view).size() == view.seats.size();
  // Another round may have been reported since the election.
  round_->has_quorum = view.counts_promises ? !view.needs_election : round_->has_quorum || are_all_here;
  const bool are_all_back = (is_complete || are_others_empty(view.seats)) && round_->is_latest && round_->has_quorum;
  const std::int64_t until_ms = std::max(round_->until_ms, view.caught_up_ms);
  if (!are_all_back && view.now_ms < until_ms) return {.kind = Kind::kWaits, .until_ms = until_ms};
  if (!round_->has_quorum && !view.job_ends) {
    // A candidate resigns when its time is up.
    if (view.needs_election) return {.kind = Kind::kWaits, .until_ms = view.now_ms + round_->lease.renewal_ms()};
    return {.kind = Kind::kFails, .why = why_lost(view)};
  }
  Decision decision{.kind = round_->stops || !is_complete ? Kind::kStops : Kind::kGoesOn,
                    .node_count = round_->node_count};
  if (!is_complete) {
    missed_.clear();
    for (int rank = 0; rank < round_->node_count; ++rank) missed_.insert(missed_.end(), rank);
    for (const Seat& seat : view.seats) missed_.erase(seat.seat);
    for (const int rank : view.out) missed_.erase(rank);
    missed_round_ = round_->number;
    missed_incarnation_ = round_->incarnation;
    decision.missed.assign(missed_.begin(), missed_.end());
  }
  round_.reset();
  return decision;
}

// Why the job ends: who did not come back has ended by now.
std::string Rebuilding::why_lost(const View& view) const {
  const std::vector<int> ranks = connected_ranks(view);
  const std::string here =
      ranks.empty() ? "none"
                    : format("only {} (node {} {})", ranks.size(), plural("rank", ranks.size()), rank_ranges(ranks));
  return format(
      "the coordinator was lost, and of the {} nodes of round {} {} reconnected before their leases were over; where "
      "no "
      "other node can take over all of them are needed",
      round_->node_count, round_->number, here);
}

bool Rebuilding::was_missed(const AgentFacts& facts) {
  if (facts.incarnation != missed_incarnation_ || facts.round != missed_round_) return false;
  return missed_.erase(facts.place.node_rank) > 0;
}

}  // namespace elastic::coordinator
