#include "health/hang/hang_facts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/base/text.h"

namespace elastic::hang {
namespace {

constexpr int kPasses = 4;

template <class T>
void cut(std::vector<T>& list, std::size_t most) {
  if (list.size() > most) list.resize(most);
}

void clean(std::string& text, std::size_t most) { text = printable(text, most); }
void clean(SourceFacts& source) { clean(source.why, bounds::kReasonBytes); }

void clean(std::vector<Stack>& stacks) {
  cut(stacks, bounds::kStacks);
  for (Stack& stack : stacks) {
    cut(stack.frames, bounds::kFrames);
    for (Frame& frame : stack.frames) {
      clean(frame.function, bounds::kNameBytes);
      clean(frame.file, bounds::kNameBytes);
    }
  }
}

// Whether a fact can be one of this world.
bool makes_sense(const GroupFact& fact, std::size_t groups, std::int32_t world_size) {
  const std::int64_t retired = fact.retired.value_or(0);
  const std::int32_t partner = fact.partner.value_or(0);
  return fact.group < groups && retired >= 0 && retired <= fact.enqueued && partner >= 0 && partner < world_size;
}

// Returns the ranks whose facts are not all there: none of them is left.
RankRuns clean(std::vector<Group>& groups, std::vector<GroupFact>& facts, const RankRuns& allowed,
               std::int32_t world_size) {
  cut(groups, bounds::kGroups);
  for (Group& group : groups) {
    clean(group.name, bounds::kNameBytes);
    group.members = normalised(group.members, world_size);
    group.size = std::clamp(group.size, 0, world_size);
  }
  std::vector<RankRuns> wrong;
  // Behind the last fact that is used there may have been more of any rank.
  if (facts.size() > bounds::kGroupFacts) wrong.push_back(allowed);
  cut(facts, bounds::kGroupFacts);
  for (GroupFact& fact : facts) {
    clean(fact.operation, bounds::kNameBytes);
    fact.ranks = normalised(fact.ranks, world_size);
    if (!makes_sense(fact, groups.size(), world_size)) wrong.push_back(fact.ranks);
  }
  // A fact of several ranks, one of which is wrong, is left out for all of them, and so on; not without end.
  RankRuns incomplete = united(wrong);
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::size_t erased = std::erase_if(facts, [&](const GroupFact& fact) {
      const bool is_sound = !fact.ranks.empty() && makes_sense(fact, groups.size(), world_size);
      if (is_sound && !fact.ranks.meets(incomplete) && allowed.includes(fact.ranks)) return false;
      wrong.push_back(fact.ranks);
      return true;
    });
    if (erased == 0) return incomplete;
    incomplete = united(wrong);
  }
  facts.clear();
  return allowed;
}

}  // namespace

NodeFacts within_bounds(NodeFacts facts, std::int32_t world_size) {
  clean(facts.name, bounds::kNameBytes);
  clean(facts.lost, bounds::kReasonBytes);
  facts.own_ranks = normalised(facts.own_ranks, world_size);
  if (!facts.has_answered) {
    return {.name = facts.name, .own_ranks = facts.own_ranks, .has_answered = false, .lost = facts.lost};
  }
  for (SourceFacts* source : {&facts.stacks, &facts.ras_source, &facts.nvml, &facts.store_source, &facts.links}) {
    clean(*source);
  }
  cut(facts.link_faults, bounds::kLinkFaults);
  for (LinkFault& fault : facts.link_faults) {
    clean(fault.port, bounds::kNameBytes);
    clean(fault.fault, bounds::kReasonBytes);
  }
  clean(facts.different_stacks);
  const RankRuns incomplete = clean(facts.groups, facts.group_facts, facts.own_ranks, world_size);
  std::set<std::int32_t> seen;
  std::erase_if(facts.ranks, [&](const RankFacts& rank) {
    return !facts.own_ranks.contains(rank.rank) || !seen.insert(rank.rank).second;
  });
  cut(facts.ranks, bounds::kRanks);
  for (RankFacts& rank : facts.ranks) {
    clean(rank.wchan, bounds::kNameBytes);
    clean(rank.recorder);
    if (incomplete.contains(rank.rank)) rank.recorder = {Source::kLost, "what it said makes no sense"};
    if (rank.gpu_watts && !(std::isfinite(*rank.gpu_watts) && *rank.gpu_watts >= 0)) rank.gpu_watts.reset();
    for (auto* stack : {&rank.stack, &rank.stack_then, &rank.child_stack}) {
      if (*stack && **stack >= facts.different_stacks.size()) stack->reset();
    }
  }
  if (facts.ras) {
    clean(facts.ras->groups, facts.ras->counts, RankRuns::all(world_size), world_size);
    facts.ras->missing = normalised(facts.ras->missing, world_size);
  }
  if (facts.store) {
    facts.store->absent = normalised(facts.store->absent, world_size);
    facts.store->waiting = normalised(facts.store->waiting, world_size);
    cut(facts.store->waits, bounds::kStoreWaits);
    for (StoreWait& wait : facts.store->waits) {
      clean(wait.key, bounds::kNameBytes);
      wait.ranks = normalised(wait.ranks, world_size);
    }
  }
  return facts;
}

std::uint32_t digest_of(std::string_view sizes_and_types) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char byte : sizes_and_types) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 16777619;
  return hash == 0 ? 1 : hash;
}

bool can_still_dump(const RankFacts& rank) {
  const bool was_had = rank.recorder.state == Source::kHad || rank.recorder.state == Source::kPartial;
  // The threads of a worker that is stopped are, too.
  const bool is_able = rank.state != ThreadState::kStopped && rank.state != ThreadState::kGone;
  return rank.reads_dump_key && !was_had && is_able;
}

bool want_dump_key(const JobFacts& facts) {
  const bool have_store = std::ranges::any_of(facts.nodes, [](const NodeFacts& node) {
    return node.store_source.state == Source::kHad || node.store_source.state == Source::kPartial;
  });
  return have_store && std::ranges::any_of(facts.nodes, [](const NodeFacts& node) {
           return std::ranges::any_of(node.ranks, can_still_dump);
         });
}

}  // namespace elastic::hang
