#include "health/hang/hang_moves.h"

#include <cstddef>

namespace elastic::hang {
namespace {

// Of one core: less is used by threads beside the one that waits.
constexpr std::int32_t kComputesPercent = 50;

bool computes(const RankFacts& rank) {
  if (rank.state != ThreadState::kRuns && rank.state != ThreadState::kSleeps) return false;
  return rank.cpu_percent >= kComputesPercent || (rank.cpu_percent < 0 && rank.state == ThreadState::kRuns);
}

struct Count {
  std::size_t all = 0;
  std::size_t moved = 0;
  void add(bool has_moved) {
    ++all;
    if (has_moved) ++moved;
  }
  bool most() const { return moved * 2 > all; }
};

}  // namespace

bool is_moving(const HangPicture& picture) {
  Count waiting;
  Count others;
  for (const HangPicture::Rank& rank : picture.ranks()) {
    if (rank.facts == nullptr || !rank.facts->stack || !rank.facts->stack_then) continue;
    const std::vector<Stack>& stacks = picture.nodes()[rank.node].different_stacks;
    const bool stands_elsewhere = stacks[*rank.facts->stack] != stacks[*rank.facts->stack_then];
    if (rank.is_in(Doing::kCollective) || rank.is_in(Doing::kStorage)) {
      waiting.add(stands_elsewhere);
    } else {
      others.add(stands_elsewhere || computes(*rank.facts));
    }
  }
  return waiting.all > 0 ? waiting.most() : others.most();
}

}  // namespace elastic::hang
