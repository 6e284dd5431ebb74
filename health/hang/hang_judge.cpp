#include "health/hang/hang_judge.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "src/base/check.h"

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

// By how far each rank is in each group: those that wait for one that is behind.
std::vector<bool> counted_to_wait(const HangPicture& picture) {
  std::vector<bool> waits(picture.ranks().size());
  for (const WaitWalk::Culprit& culprit : picture.waits().culprits)
    culprit.behind.waiting.for_each([&](std::int32_t rank) { waits.at(static_cast<std::size_t>(rank)) = true; });
  return waits;
}

}  // namespace

HangVerdict judge(const HangPicture& picture, const JudgeSettings& settings) {
  for (const HangRule& rule : hang_rules()) {
    std::optional<HangVerdict> found = rule.find(picture, settings);
    if (!found) continue;
    found->rule = rule.number;
    found->name = rule.name;
    found->without_evidence = picture.without_facts();
    if (found->culprits.size() > bounds::kCulprits) found->culprits.resize(bounds::kCulprits);
    ELASTIC_CHECK(found->culprits.empty() == (found->fault == Fault::kNone || found->fault == Fault::kScript));
    return *std::move(found);
  }
  ELASTIC_CHECK(false);  // the last rule holds always
  return {};
}

bool is_moving(const HangPicture& picture) {
  Count waiting;
  Count others;
  const std::vector<bool> waits = counted_to_wait(picture);
  for (std::size_t number = 0; number < waits.size(); ++number) {
    const HangPicture::Rank& rank = picture.ranks()[number];
    if (rank.facts == nullptr || !rank.facts->stack || !rank.facts->stack_then) {
      if (waits[number]) waiting.add(false);
      continue;
    }
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
