#include "rendezvous/election/tally.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace elastic::election {

Tally::Tally(Electorate electorate) : electorate_(std::move(electorate)) {
  const auto ranks = static_cast<std::size_t>(electorate_.node_count());
  until_ms_.assign(ranks, kNever);
  heard_.assign(ranks, false);
  dead_.assign(ranks, false);
  for (int rank = 0; rank < electorate_.node_count(); ++rank) {
    if (!electorate_.has(rank)) continue;
    const bool is_majority = static_cast<int>(longest_.size()) > electorate_.size() / 2;
    std::set<Entry>& entries = is_majority ? others_ : longest_;
    entries.emplace_hint(entries.end(), kNever, rank);
  }
}

void Tally::supports(int rank, std::int64_t until_ms) {
  if (!electorate_.has(rank)) return;
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

void Tally::hears(int rank) {
  if (!electorate_.has(rank) || heard_[static_cast<std::size_t>(rank)]) return;
  heard_[static_cast<std::size_t>(rank)] = true;
  ++hearers_;
}

void Tally::forget_hearers() {
  heard_ = dead_;
  hearers_ = static_cast<int>(std::ranges::count(heard_, true));
}

void Tally::died(int rank) {
  if (!electorate_.has(rank)) return;
  dead_[static_cast<std::size_t>(rank)] = true;
  supports(rank, kAlways);
  hears(rank);
}

std::int64_t Tally::ends_ms() const {
  const TieBreaker tie_breaker = electorate_.tie_breaker();
  if (longest_.empty()) return kNever;
  const std::int64_t of_more_than_half_ms = longest_.begin()->first;
  if (electorate_.size() % 2 != 0) return of_more_than_half_ms;
  // One supporter less is half.
  std::int64_t of_half_ms = std::next(longest_.begin())->first;
  if (!tie_breaker.is_coordinator()) {
    const std::optional<int> rank = tie_breaker.rank();
    const bool counts = rank && electorate_.has(*rank);
    of_half_ms = counts ? std::min(of_half_ms, until_ms_[static_cast<std::size_t>(*rank)]) : kNever;
  }
  return std::max(of_more_than_half_ms, of_half_ms);
}

bool Tally::has_heard(std::optional<int> host_rank) const {
  const TieBreaker tie_breaker = electorate_.tie_breaker();
  const std::optional<int> rank = tie_breaker.is_coordinator() ? host_rank : tie_breaker.rank();
  const bool with_tie_breaker = rank && electorate_.has(*rank) && heard_[static_cast<std::size_t>(*rank)];
  if (rank && !with_tie_breaker && 2 * hearers_ == electorate_.size()) return false;
  return electorate_.is_quorum(hearers_, with_tie_breaker);
}

}  // namespace elastic::election
