#include "rendezvous/election/node_vote.h"

#include <algorithm>
#include <utility>

namespace elastic::election {

namespace {

bool are_of_one_process(const CoordinatorId& one, const CoordinatorId& other) {
  return one == other || (one.agent != 0 && one.agent == other.agent);
}

}  // namespace

void NodeVote::welcomed(const protocol::Welcome& welcome, std::int64_t now_ms) {
  voter_.learns({welcome.loss_timeout_ms}, now_ms);
  sent_state_to_.reset();
}

std::optional<NodeVote::Answer> NodeVote::lease_granted(const protocol::Welcome& welcome, std::int64_t now_ms) {
  const CoordinatorId id = id_of(welcome);
  const bool is_another = id != voter_.coordinator();
  if (is_another && !voter_.may_vote(id, now_ms)) return {};
  if (has_left_another_than(id)) return {};
  // If the vote has not ended, this is a later coordinator of the same process: the earlier one has resigned, though
  // the node has not heard it, and others may run under its leases.
  if (is_another && !voter_.is_released(now_ms)) voter_.resigned(voter_.coordinator(), now_ms);
  if (voter_state_is_for_ != id) note_voter_state(id, now_ms);
  if (is_another) {
    vote(id, now_ms);
  } else {
    voter_.lease_granted(id, now_ms);
  }
  if (sent_state_to_ == id) return Answer{};
  sent_state_to_ = id;
  return Answer{voter_state_};
}

void NodeVote::leaves(const protocol::Welcome& welcome) {
  const CoordinatorId id = id_of(welcome);
  std::erase_if(leaves_, [&](const CoordinatorId& left) { return are_of_one_process(left, id); });
  leaves_.push_back(id);
}

bool NodeVote::has_left_another_than(const CoordinatorId& id) const {
  return !std::ranges::all_of(leaves_, [&](const CoordinatorId& left) { return are_of_one_process(left, id); });
}

void NodeVote::prepares(const protocol::Welcome& welcome, std::int64_t now_ms) {
  if (!has_voted()) vote(id_of(welcome), now_ms);
}

// Called before the vote, which clears what the voter state contains.
void NodeVote::note_voter_state(const CoordinatorId& id, std::int64_t now_ms) {
  voter_state_is_for_ = id;
  voter_state_ = {{}, {}, voter_.others_may_run_for_ms(now_ms)};
  // Rounds of another start of the job say nothing to this one.
  if (id.incarnation != incarnation_) return;
  voter_state_.rounds = rounds_.rounds();
  voter_state_.witnessed_death = voter_.witnessed_death();
}

void NodeVote::vote(const CoordinatorId& id, std::int64_t now_ms) {
  if (id.agent == own_) {
    voter_.vote_for_own(id, now_ms);
  } else {
    voter_.vote(id, now_ms);
  }
}

void NodeVote::resigned(const protocol::Welcome& welcome, std::int64_t now_ms) {
  voter_.resigned(id_of(welcome), now_ms);
  std::erase(leaves_, id_of(welcome));
}

void NodeVote::own_is_over(std::int64_t now_ms) {
  if (!votes_for_own()) return;
  std::erase(leaves_, voter_.coordinator());
  voter_.resigned(voter_.coordinator(), now_ms);
}

bool NodeVote::died(std::optional<int> rank, bool holds_lease, bool runs_workers, std::int64_t now_ms) {
  if (!has_voted() || voter_.is_released(now_ms)) return false;
  std::erase(leaves_, voter_.coordinator());
  const auto& rounds = rounds_.rounds();
  const bool runs_last = runs_workers && !rounds.empty() && rounds.back().has_run;
  voter_.died(voter_.coordinator(),
              {.holds_lease = holds_lease,
               .runs_workers = runs_last,
               .round = rounds.empty() ? Round{} : rounds.back().round,
               .rank = rank},
              now_ms);
  return true;
}

std::optional<std::int64_t> NodeVote::free_at_ms(std::int64_t now_ms) const {
  if (!has_voted()) return {};
  return voter_.is_released(now_ms) ? 0 : voter_.ends_ms(now_ms);
}

void NodeVote::hears(const protocol::PrepareRound& message, protocol::Incarnation incarnation) {
  is_in(incarnation);
  leaves_.clear();  // the coordinator has not let the node go
  const Round round{message.fence.term, message.round, message.membership, message.place.node_count, message.host_rank};
  rounds_.hears(round, message.place.node_rank, message.before);
}

void NodeVote::hears(const protocol::NextRound& next, protocol::Incarnation incarnation) {
  is_in(incarnation);
  rounds_.hears(next.next, {}, next.before);
}

bool NodeVote::have_run_after(const protocol::JobResult& job_result, protocol::Incarnation incarnation) const {
  const auto is_later = [&](const auto& known) {
    return known.has_run && (known.round.number > job_result.round || known.round.term > job_result.term);
  };
  return has_voted() && incarnation == incarnation_ && std::ranges::any_of(rounds_.rounds(), is_later);
}

void NodeVote::is_in(protocol::Incarnation incarnation) {
  if (std::exchange(incarnation_, incarnation) != incarnation) rounds_ = {};
}

void NodeVote::runs(protocol::RoundNumber round) {
  if (rounds_.rounds().empty()) return;
  const Round latest = rounds_.rounds().back().round;
  if (latest.number == round) rounds_.runs(latest);
}

}  // namespace elastic::election
