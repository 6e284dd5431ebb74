#include "rendezvous/election/quorum_tracker.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace elastic::election {

QuorumTracker::QuorumTracker(VoterSet voter_set) : voter_set_(std::move(voter_set)) {
  const auto ranks = static_cast<std::size_t>(voter_set_.node_count());
  until_ms_.assign(ranks, kNever);
  heard_.assign(ranks, false);
  dead_.assign(ranks, false);
  for (int rank = 0; rank < voter_set_.node_count(); ++rank) {
    if (!voter_set_.has(rank)) continue;
    const bool is_majority = static_cast<int>(longest_.size()) > voter_set_.size() / 2;
    std::set<Entry>& entries = is_majority ? others_ : longest_;
    entries.emplace_hint(entries.end(), kNever, rank);
  }
}

void QuorumTracker::votes_until(int rank, std::int64_t until_ms) {
  if (!voter_set_.has(rank)) return;
  std::int64_t& present_ms = until_ms_[static_cast<std::size_t>(rank)];
  if (until_ms <= present_ms) return;
  // The sets' nodes are moved, so that a renewal allocates nothing.
  const bool is_among_longest = longest_.contains({present_ms, rank});
  auto entry = (is_among_longest ? longest_ : others_).extract(Entry{present_ms, rank});
  present_ms = until_ms;
  entry.value() = {until_ms, rank};
  if (!is_among_longest && *longest_.begin() < entry.value()) {
    others_.insert(longest_.extract(longest_.begin()));
    longest_.insert(std::move(entry));
  } else {
    (is_among_longest ? longest_ : others_).insert(std::move(entry));
  }
}

void QuorumTracker::hears(int rank) {
  if (!voter_set_.has(rank) || heard_[static_cast<std::size_t>(rank)]) return;
  heard_[static_cast<std::size_t>(rank)] = true;
  ++hearers_;
}

void QuorumTracker::forget_hearers() {
  heard_ = dead_;
  hearers_ = static_cast<int>(std::ranges::count(heard_, true));
}

void QuorumTracker::died(int rank) {
  if (!voter_set_.has(rank)) return;
  dead_[static_cast<std::size_t>(rank)] = true;
  votes_until(rank, kAlways);
  hears(rank);
}

std::int64_t QuorumTracker::ends_ms() const {
  const TieBreaker tie_breaker = voter_set_.tie_breaker();
  if (longest_.empty()) return kNever;
  const std::int64_t of_more_than_half_ms = longest_.begin()->first;
  if (voter_set_.size() % 2 != 0) return of_more_than_half_ms;
  // One voter fewer is half.
  std::int64_t of_half_ms = std::next(longest_.begin())->first;
  if (!tie_breaker.is_coordinator()) {
    const std::optional<int> rank = tie_breaker.rank();
    const bool counts = rank && voter_set_.has(*rank);
    of_half_ms = counts ? std::min(of_half_ms, until_ms_[static_cast<std::size_t>(*rank)]) : kNever;
  }
  return std::max(of_more_than_half_ms, of_half_ms);
}

bool QuorumTracker::has_heard(std::optional<int> host_rank) const {
  const TieBreaker tie_breaker = voter_set_.tie_breaker();
  const std::optional<int> rank = tie_breaker.is_coordinator() ? host_rank : tie_breaker.rank();
  const bool with_tie_breaker = rank && voter_set_.has(*rank) && heard_[static_cast<std::size_t>(*rank)];
  if (rank && !with_tie_breaker && 2 * hearers_ == voter_set_.size()) return false;
  return voter_set_.is_quorum(hearers_, with_tie_breaker);
}

}  // namespace elastic::election
