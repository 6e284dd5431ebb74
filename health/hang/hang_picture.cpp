#include "health/hang/hang_picture.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

// Groups that several nodes name, each once.
class MergedGroups {
 public:
  // Returns the place of each group of a node in the merged list.
  std::vector<std::uint32_t> add(const std::vector<Group>& groups) {
    std::vector<std::uint32_t> places;
    for (const Group& group : groups) {
      const std::string members = group.is_open ? "?" : group.digest == 0 ? group.members.text() : std::string();
      const auto [known, is_new] = places_.emplace(std::tuple(group.name, group.digest, group.size, members),
                                                   static_cast<std::uint32_t>(merged_.size()));
      if (is_new) {
        merged_.push_back(group);
        parts_.emplace_back();
      }
      parts_[known->second].push_back(group.members);
      places.push_back(known->second);
    }
    return places;
  }
  std::vector<Group> take() {
    for (std::size_t i = 0; i < merged_.size(); ++i) merged_[i].members = united(parts_[i]);
    return std::move(merged_);
  }

 private:
  std::map<std::tuple<std::string, std::uint32_t, std::int32_t, std::string>, std::uint32_t> places_;
  std::vector<Group> merged_;
  std::vector<std::vector<RankRuns>> parts_;
};

void add_facts(std::vector<GroupFact>& out, const std::vector<GroupFact>& facts,
               const std::vector<std::uint32_t>& places) {
  for (GroupFact fact : facts) {
    fact.group = places[fact.group];
    out.push_back(std::move(fact));
  }
}

// Whether there is more to know than that somebody might be behind.
bool is_conclusive(const WaitWalk& found) {
  return !found.culprits.empty() || !found.cycle.empty() || found.mismatch || !found.stuck.empty();
}

}  // namespace

HangPicture::HangPicture(JobFacts facts) : facts_(std::move(facts)) {
  facts_.world_size = std::max(facts_.world_size, 0);
  for (NodeFacts& node : facts_.nodes) node = within_bounds(std::move(node), facts_.world_size);
  for (const NodeFacts& node : facts_.nodes) {
    if (node.ras && ras_ == nullptr) ras_ = &*node.ras;
    if (node.store && store_ == nullptr) store_ = &*node.store;
  }
  place_ranks();
  walk_groups();
}

void HangPicture::place_ranks() {
  ranks_.assign(static_cast<std::size_t>(facts_.world_size), {.node = facts_.nodes.size()});
  for (std::size_t i = 0; i < facts_.nodes.size(); ++i) {
    const NodeFacts& node = facts_.nodes[i];
    node.own_ranks.for_each([&](std::int32_t rank) { ranks_[static_cast<std::size_t>(rank)].node = i; });
  }
  for (std::size_t i = 0; i < facts_.nodes.size(); ++i) {
    const NodeFacts& node = facts_.nodes[i];
    const auto stack_at = [&](const auto& place) { return place ? &node.different_stacks[*place] : nullptr; };
    std::vector<StackMeaning> meanings;
    for (const Stack& stack : node.different_stacks) meanings.push_back(meaning_of(stack));
    for (const RankFacts& known : node.ranks) {
      Rank& rank = ranks_[static_cast<std::size_t>(known.rank)];
      if (rank.node != i) continue;  // another node calls it its own, too
      rank.facts = &known;
      rank.stack = stack_at(known.stack);
      rank.child_stack = stack_at(known.child_stack);
      if (known.stack) rank.meaning = meanings[*known.stack];
    }
  }
  without_facts_ = ranks_where([](const Rank& rank) { return rank.facts == nullptr; });
  known_stacks_ = static_cast<std::size_t>(
      std::ranges::count_if(ranks_, [](const Rank& rank) { return rank.meaning.doing != Doing::kUnknown; }));
}

void HangPicture::walk_groups() {
  WaitFacts recorded{.world_size = facts_.world_size};
  MergedGroups groups;
  for (std::size_t i = 0; i < facts_.nodes.size(); ++i) {
    const NodeFacts& node = facts_.nodes[i];
    add_facts(recorded.facts, node.group_facts, groups.add(node.groups));
  }
  recorded.groups = groups.take();
  recorded.complete =
      ranks_where([](const Rank& rank) { return rank.facts != nullptr && rank.facts->recorder.state == Source::kHad; });
  waits_ = walk(recorded);
  if (is_conclusive(waits_) || ras_ == nullptr) return;
  WaitWalk counted =
      walk({.world_size = facts_.world_size, .groups = ras_->groups, .facts = ras_->counts, .complete = {}});
  if (is_conclusive(counted)) waits_ = std::move(counted);
}

std::string HangPicture::node_name(std::int32_t rank) const {
  const std::size_t node = ranks_[static_cast<std::size_t>(rank)].node;
  return node < facts_.nodes.size() ? facts_.nodes[node].name : std::string();
}

std::string HangPicture::rank_text(std::int32_t rank) const {
  const std::string node = node_name(rank);
  return node.empty() ? format("rank {}", rank) : format("rank {} (node {})", rank, node);
}

std::vector<std::size_t> HangPicture::nodes_of(const RankRuns& ranks) const {
  std::set<std::size_t> found;
  ranks.for_each([&](std::int32_t rank) { found.insert(ranks_[static_cast<std::size_t>(rank)].node); });
  found.erase(facts_.nodes.size());
  return {found.begin(), found.end()};
}

}  // namespace elastic::hang
