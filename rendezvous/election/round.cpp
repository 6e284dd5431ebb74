#include "rendezvous/election/round.h"

#include <algorithm>
#include <utility>

namespace elastic::election {

void KnownRounds::hears(const Round& round, std::optional<int> rank, const std::vector<Round>& before) {
  if (!rounds_.empty() && round <= rounds_.back().round) return;
  std::vector<KnownRound> known;
  for (const Round& earlier : before) {
    const auto found = std::ranges::find(rounds_, earlier, &KnownRound::round);
    known.push_back(found != rounds_.end() ? *found : KnownRound{.round = earlier});
  }
  known.push_back({.round = round, .rank = rank});
  rounds_ = std::move(known);
}

bool KnownRounds::runs(const Round& round) {
  if (rounds_.empty() || rounds_.back().round != round) return false;
  rounds_.erase(rounds_.begin(), rounds_.end() - 1);
  rounds_.back().has_run = true;
  return true;
}

}  // namespace elastic::election
