#include "rendezvous/agent/promises.h"

#include <algorithm>
#include <utility>

namespace elastic::agent {

using election::CoordinatorId;
using election::Round;

namespace {

bool are_of_one_process(const CoordinatorId& one, const CoordinatorId& other) {
  return one == other || (one.agent != 0 && one.agent == other.agent);
}

}  // namespace

void Promises::welcomed(const protocol::Welcome& welcome, std::int64_t now_ms) {
  allegiance_.learns({welcome.loss_timeout_ms}, now_ms);
  has_testified_to_.reset();
}

std::optional<Promises::Answer> Promises::kept(const protocol::Welcome& welcome, std::int64_t now_ms) {
  const CoordinatorId id = id_of(welcome);
  const bool is_another = id != allegiance_.coordinator();
  if (is_another && !allegiance_.may_vote(id, now_ms)) return {};
  if (has_left_another_than(id)) return {};
  // Where the promise is not over it is a later coordinator of the same process: the earlier one has resigned, though
  // the node has not heard it, and others may run under its leases.
  if (is_another && !allegiance_.is_released(now_ms)) allegiance_.resigned(allegiance_.coordinator(), now_ms);
  if (testimony_is_for_ != id) testify(id, now_ms);
  if (is_another) {
    vote(id, now_ms);
  } else {
    allegiance_.kept(id, now_ms);
  }
  if (has_testified_to_ == id) return Answer{};
  has_testified_to_ = id;
  return Answer{testimony_};
}

void Promises::leaves(const protocol::Welcome& welcome) {
  const CoordinatorId id = id_of(welcome);
  std::erase_if(leaves_, [&](const CoordinatorId& left) { return are_of_one_process(left, id); });
  leaves_.push_back(id);
}

bool Promises::has_left_another_than(const CoordinatorId& id) const {
  return !std::ranges::all_of(leaves_, [&](const CoordinatorId& left) { return are_of_one_process(left, id); });
}

void Promises::prepares(const protocol::Welcome& welcome, std::int64_t now_ms) {
  if (!has_promised()) vote(id_of(welcome), now_ms);
}

// The vote uses up what the testimony contains: this comes first.
void Promises::testify(const CoordinatorId& id, std::int64_t now_ms) {
  testimony_is_for_ = id;
  testimony_ = {{}, {}, allegiance_.others_may_run_for_ms(now_ms)};
  // Rounds of another start of the job say nothing to this one.
  if (id.incarnation != incarnation_) return;
  testimony_.rounds = rounds_.rounds();
  testimony_.certificate = allegiance_.certificate();
}

void Promises::vote(const CoordinatorId& id, std::int64_t now_ms) {
  if (id.agent == own_) {
    allegiance_.vote_for_own(id, now_ms);
  } else {
    allegiance_.vote(id, now_ms);
  }
}

void Promises::resigned(const protocol::Welcome& welcome, std::int64_t now_ms) {
  allegiance_.resigned(id_of(welcome), now_ms);
  std::erase(leaves_, id_of(welcome));
}

void Promises::own_is_over(std::int64_t now_ms) {
  if (!supports_own()) return;
  std::erase(leaves_, allegiance_.coordinator());
  allegiance_.resigned(allegiance_.coordinator(), now_ms);
}

bool Promises::died(std::optional<int> rank, bool holds_lease, bool runs_workers, std::int64_t now_ms) {
  if (!has_promised() || allegiance_.is_released(now_ms)) return false;
  std::erase(leaves_, allegiance_.coordinator());
  const auto& rounds = rounds_.rounds();
  const bool runs_last = runs_workers && !rounds.empty() && rounds.back().has_run;
  allegiance_.died(allegiance_.coordinator(),
                   {.holds_lease = holds_lease,
                    .runs_workers = runs_last,
                    .round = rounds.empty() ? Round{} : rounds.back().round,
                    .rank = rank},
                   now_ms);
  return true;
}

std::optional<std::int64_t> Promises::free_at_ms(std::int64_t now_ms) const {
  if (!has_promised()) return {};
  return allegiance_.is_released(now_ms) ? 0 : allegiance_.ends_ms(now_ms);
}

void Promises::hears(const protocol::PrepareRound& message, protocol::Incarnation incarnation) {
  is_in(incarnation);
  leaves_.clear();  // it was not let go
  const Round round{message.fence.term, message.round, message.membership, message.place.node_count, message.host_rank};
  rounds_.hears(round, message.place.node_rank, message.before);
}

void Promises::hears(const protocol::NextRound& next, protocol::Incarnation incarnation) {
  is_in(incarnation);
  rounds_.hears(next.next, {}, next.before);
}

bool Promises::have_run_after(const protocol::Verdict& verdict, protocol::Incarnation incarnation) const {
  const auto is_later = [&](const auto& known) {
    return known.has_run && (known.round.number > verdict.round || known.round.term > verdict.term);
  };
  return has_promised() && incarnation == incarnation_ && std::ranges::any_of(rounds_.rounds(), is_later);
}

void Promises::is_in(protocol::Incarnation incarnation) {
  if (std::exchange(incarnation_, incarnation) != incarnation) rounds_ = {};
}

void Promises::runs(protocol::RoundNumber round) {
  if (rounds_.rounds().empty()) return;
  const Round latest = rounds_.rounds().back().round;
  if (latest.number == round) rounds_.runs(latest);
}

}  // namespace elastic::agent
