#include "rendezvous/election/voter_set.h"

#include <algorithm>

namespace elastic::election {

void VoterSet::strike_off(std::optional<int> rank) {
  if (rank && has(*rank)) struck_off_ = rank;
  if (tie_breaker_.rank() && has(*tie_breaker_.rank())) return;
  int first = 0;
  if (!has(first)) ++first;
  tie_breaker_ = TieBreaker::node(first);
}

bool VoterSet::is_quorum(int count, bool with_tie_breaker) const {
  if (2 * count != size()) return 2 * count > size();
  return tie_breaker_.is_coordinator() || (tie_breaker_.rank() && with_tie_breaker);
}

bool VoterSet::is_quorum(const std::vector<int>& ranks) const {
  const auto count = std::ranges::count_if(ranks, [this](int rank) { return has(rank); });
  const std::optional<int> tie_breaker = tie_breaker_.rank();
  const bool is_there = tie_breaker && has(*tie_breaker) && std::ranges::find(ranks, *tie_breaker) != ranks.end();
  return is_quorum(static_cast<int>(count), is_there);
}

}  // namespace elastic::election
