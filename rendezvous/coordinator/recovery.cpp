#include "rendezvous/coordinator/recovery.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using protocol::AgentFacts;
using protocol::AgentId;

namespace {

bool are_connected(const Recovery::View& view) {
  return std::ranges::all_of(view.slots, [&](const Slot& slot) {
    const auto found = view.roster.nodes().find(slot.agent);
    return found != view.roster.nodes().end() && found->second.session;
  });
}

// All orders of the missing nodes are tried for at most so many.
constexpr std::size_t kMostEmpty = 4;

}  // namespace

void Recovery::begin(const AgentFacts& facts, const protocol::LeaseTimes& lease, std::int64_t now_ms) {
  round_ = Round{.term = facts.transferred.term(),
                 .number = facts.round,
                 .incarnation = facts.incarnation,
                 .membership = facts.membership,
                 .node_count = facts.place.node_count,
                 .lease = lease,
                 .until_ms = now_ms + lease.all_back_ms()};
  empty_.clear();
}

bool Recovery::is_later(const AgentFacts& facts) const {
  if (!round_) return true;
  return !is_of_round(facts) &&
         std::pair(facts.transferred.term(), facts.round) > std::pair(round_->term, round_->number);
}

bool Recovery::is_of_round(const AgentFacts& facts) const {
  return round_ && facts.incarnation == round_->incarnation && facts.round == round_->number &&
         facts.membership == round_->membership;
}

void Recovery::is_reported(const AgentFacts& facts) { round_->term = std::max(round_->term, facts.transferred.term()); }

void Recovery::comes_back(AgentFacts::Activity activity) {
  using Activity = AgentFacts::Activity;
  if (activity == Activity::kRunning || activity == Activity::kPreparing) round_->is_latest = true;
}

void Recovery::elected(std::int64_t others_may_run_until_ms, std::int64_t now_ms) {
  if (!round_) return;
  round_->may_go_on = true;
  // Another candidate, for which only its own node votes, gives up before that node comes here. If workers may run
  // until their leases are over anyway, nothing is lost by waiting for it. After a silence all leases are over, and
  // workers are only still to be killed.
  const bool may_run = others_may_run_until_ms > now_ms + protocol::LeaseTimes::kKillMs;
  const std::int64_t other_candidate_ms = may_run ? round_->lease.next_vote_ms() : 0;
  round_->until_ms = std::max(others_may_run_until_ms, now_ms + other_candidate_ms + protocol::LeaseTimes::kFindMs);
}

// Every node of the round that has not come back is known to be empty.
bool Recovery::are_others_empty(const Slots& slots) const {
  const auto size = static_cast<std::size_t>(round_->node_count);
  std::vector<AgentId> missing;
  for (const AgentId agent : empty_) {
    if (!has_slot(slots, agent)) missing.push_back(agent);
  }
  if (missing.empty() || missing.size() > kMostEmpty || slots.size() + missing.size() != size) return false;
  // The digest shows whether they were in the round; which of them had which rank is not known.
  do {
    std::vector<AgentId> agents(size);
    for (const Slot& slot : slots) agents[static_cast<std::size_t>(slot.slot) % size] = slot.agent;
    auto next = missing.begin();
    for (AgentId& agent : agents) {
      if (agent == 0 && next != missing.end()) agent = *next++;
    }
    if (membership_digest(round_->incarnation, round_->number, agents) == round_->membership) return true;
  } while (std::ranges::next_permutation(missing).found);
  return false;
}

Recovery::Decision Recovery::decide(const View& view) {
  using Kind = Decision::Kind;
  ELASTIC_CHECK(round_);
  const bool is_complete = static_cast<int>(view.slots.size()) == round_->node_count;
  const bool are_all_here = is_complete && are_connected(view);
  // Another round may have been reported since the election.
  round_->may_go_on = view.counts_votes ? !view.needs_election : round_->may_go_on || are_all_here;
  const bool are_all_back = (is_complete || are_others_empty(view.slots)) && round_->is_latest && round_->may_go_on;
  const std::int64_t until_ms = std::max(round_->until_ms, view.caught_up_ms);
  if (!are_all_back && view.now_ms < until_ms) return {.kind = Kind::kWaits, .until_ms = until_ms};
  if (!round_->may_go_on && !view.job_ends) {
    // A candidate resigns when its time is up.
    if (view.needs_election) return {.kind = Kind::kWaits, .until_ms = view.now_ms + round_->lease.renewal_ms()};
    return {.kind = Kind::kFails, .why = why_lost(view.slots)};
  }
  Decision decision{.kind = round_->stops || !is_complete ? Kind::kStops : Kind::kGoesOn,
                    .node_count = round_->node_count};
  if (!is_complete) {
    missed_.clear();
    for (int rank = 0; rank < round_->node_count; ++rank) missed_.insert(missed_.end(), rank);
    for (const Slot& slot : view.slots) missed_.erase(slot.slot);
    for (const int rank : view.out) missed_.erase(rank);
    missed_round_ = round_->number;
    missed_incarnation_ = round_->incarnation;
    decision.missed.assign(missed_.begin(), missed_.end());
  }
  round_.reset();
  return decision;
}

// The nodes that came may have ended with their leases meanwhile: the missing ones are to be found.
std::string Recovery::why_lost(const Slots& slots) const {
  const std::string lost =
      format("the coordinator was lost, and of the {} nodes of round {}", round_->node_count, round_->number);
  const char* const rule = "where no other node can lead the job all are needed at once, within their leases";
  if (static_cast<int>(slots.size()) == round_->node_count) {
    return format("{} some had gone again when the last came back to it: {}", lost, rule);
  }
  std::vector<int> ranks;
  for (const Slot& slot : slots) ranks.push_back(slot.slot);
  return format("{} only {} came back to it (node {} {}): {}", lost, ranks.size(), plural("rank", ranks.size()),
                rank_ranges(ranks), rule);
}

bool Recovery::was_missed(const AgentFacts& facts) {
  if (facts.incarnation != missed_incarnation_ || facts.round != missed_round_) return false;
  return missed_.erase(facts.place.node_rank) > 0;
}

}  // namespace elastic::coordinator
