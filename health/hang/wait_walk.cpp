#include "health/hang/wait_walk.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace elastic::hang {
namespace {

// Sides of a mismatch that are told apart.
constexpr std::size_t kSides = 16;

// Collectives whose input has the same sizes on all members. Of others (all_to_all, scatter, gather) it may differ.
constexpr auto kAlike = std::to_array<std::string_view>(
    {"all_gather", "all_reduce", "allgather", "allreduce", "barrier", "broadcast", "reduce", "reduce_scatter"});

bool has_equal_sizes(std::string_view operation) {
  if (operation.empty()) return true;  // RAS's counts
  operation = operation.substr(operation.find(':') + 1);
  return std::ranges::any_of(kAlike, [&](std::string_view word) { return operation.starts_with(word); });
}

// A member of a group with its newest collective there.
struct Entry {
  std::int32_t rank = 0;
  std::int64_t enqueued = 0;
  bool is_in_flight = false;
  std::int64_t retired = 0;  // it waits for those who have launched no more than this; of RAS: for all with fewer
  const GroupFact* fact = nullptr;  // null: it has launched nothing
};

// The members of a group that have launched as many collectives; in rising order.
struct Level {
  std::uint32_t group = 0;
  std::span<const Entry> entries = {};
  bool is_lowest = false;
  std::size_t waiting = 0;  // members that wait for those of this level
};

// Ranks and levels are nodes: a rank has an edge to the level below the one that it waits in, and a level to its own
// members and to the level below. So there are no more edges than members.
class Walker {
 public:
  explicit Walker(const WaitFacts& facts)
      : facts_(facts),
        world_(static_cast<std::size_t>(facts.world_size)),
        known_in_(world_),
        is_unknown_(world_),
        waits_(world_),
        waits_in_level_(world_),
        waits_for_(world_),
        is_waited_for_(world_) {}

  WaitWalk walk() {
    sort_facts();
    for (std::uint32_t group = 0; group < facts_.groups.size(); ++group) look_at(group);
    look_at_partners();
    // RAS does not say what is over: its groups stand only where all of them are level.
    if (levels_with_waiting_ == 0) {
      for (const std::uint32_t group : level_groups_) note_stuck(group, facts_.groups[group].members);
    }
    find_culprits();
    out_.cycle = cycle();
    out_.maybe = RankRuns::of(std::move(maybe_));
    out_.stuck_members = united(stuck_members_);
    out_.unseen = unseen();
    return std::move(out_);
  }

 private:
  void sort_facts() {
    by_group_.resize(facts_.groups.size());
    for (const GroupFact& fact : facts_.facts) {
      if (fact.group >= by_group_.size()) continue;
      by_group_[fact.group].push_back(&fact);
      out_.has_facts = true;
    }
  }

  // The group's members of which something is known, in the order of what they have launched.
  std::vector<Entry>& entries_of(std::uint32_t group, std::vector<std::int32_t>& unknown) {
    std::vector<Entry>& entries = entries_.emplace_back();
    const std::uint32_t stamp = group + 1;
    const RankRuns& members = facts_.groups[group].members;
    for (const GroupFact* fact : by_group_[group]) {
      if (fact->partner) continue;
      fact->ranks.for_each([&](std::int32_t rank) {
        if (!members.contains(rank) || known_in_[static_cast<std::size_t>(rank)] == stamp) return;
        known_in_[static_cast<std::size_t>(rank)] = stamp;
        const std::int64_t retired = fact->retired.value_or(fact->enqueued - 1);
        entries.push_back({rank, fact->enqueued, fact->retired && retired < fact->enqueued, retired, fact});
      });
    }
    members.for_each([&](std::int32_t rank) {
      if (known_in_[static_cast<std::size_t>(rank)] == stamp) return;
      if (facts_.complete.contains(rank)) {
        entries.push_back({.rank = rank});
      } else {
        unknown.push_back(rank);
        is_unknown_[static_cast<std::size_t>(rank)] = true;
      }
    });
    std::ranges::sort(entries, {}, [](const Entry& entry) { return std::tuple(entry.enqueued, entry.rank); });
    return entries;
  }

  void look_at(std::uint32_t group) {
    std::vector<std::int32_t> unknown;
    std::vector<Entry>& entries = entries_of(group, unknown);
    if (entries.empty()) return;
    const Group& known = facts_.groups[group];
    const std::size_t named = known.members.size();
    const auto size = static_cast<std::size_t>(std::max(known.size, 0));
    const std::size_t unnamed = size > named ? size - named : 0;
    const bool is_all = unknown.empty() && unnamed == 0 && !known.is_open;
    const std::int64_t lowest = entries.front().enqueued;
    for (Entry& entry : entries) {
      // What RAS counts is not over where others have not launched it, or may not have.
      if (entry.fact == nullptr || entry.fact->retired) continue;
      entry.is_in_flight = entry.enqueued > lowest || !is_all;
    }
    add_levels(group, entries);
    const bool is_even = lowest == entries.back().enqueued;
    const auto waits = [](const Entry& entry) { return entry.is_in_flight; };
    if (std::ranges::any_of(entries, waits) && !std::ranges::any_of(entries, [&](const Entry& entry) {
          return entry.enqueued == lowest && !entry.is_in_flight;
        })) {
      maybe_.insert(maybe_.end(), unknown.begin(), unknown.end());
      out_.maybe_more += known.is_open ? std::max<std::size_t>(unnamed, 1) : unnamed;
    }
    find_mismatch(group, entries);
    if (!is_all) return;
    if (std::ranges::all_of(entries, [&](const Entry& entry) {
          return entry.is_in_flight && entry.fact->retired.value_or(lowest) < lowest;
        })) {
      note_stuck(group, known.members);
    } else if (is_even && lowest > 0 && entries.size() > 1 &&
               std::ranges::none_of(entries, [](const Entry& entry) { return entry.fact->retired.has_value(); })) {
      level_groups_.push_back(group);
    }
  }

  void note_stuck(std::uint32_t group, RankRuns members) {
    stuck_members_.push_back(std::move(members));
    if (out_.stuck.empty()) {
      const GroupFact& fact = *by_group_[group].front();
      out_.stuck_number = fact.enqueued;
      out_.stuck_operation = fact.operation;
    }
    if (out_.stuck.empty() || out_.stuck.back() != group) out_.stuck.push_back(group);
  }

  void add_levels(std::uint32_t group, std::span<const Entry> entries) {
    const std::size_t first = levels_.size();
    for (std::size_t begin = 0; begin < entries.size();) {
      std::size_t end = begin;
      while (end < entries.size() && entries[end].enqueued == entries[begin].enqueued) ++end;
      levels_.push_back({group, entries.subspan(begin, end - begin), begin == 0, 0});
      begin = end;
    }
    const auto levels = std::span(levels_).subspan(first);
    for (const Entry& entry : entries) {
      if (!entry.is_in_flight) continue;
      waits_[static_cast<std::size_t>(entry.rank)] = true;
      const auto above = std::ranges::upper_bound(levels, entry.retired, {},
                                                  [](const Level& level) { return level.entries.front().enqueued; });
      if (above == levels.begin()) continue;  // all have launched what it waits in
      const auto index = static_cast<std::size_t>(above - levels.begin()) - 1;
      ++levels[index].waiting;
      waits_in_level_[static_cast<std::size_t>(entry.rank)].push_back(static_cast<std::uint32_t>(first + index));
    }
    std::size_t waiting = 0;
    for (std::size_t index = levels.size(); index-- > 0;) {
      waiting = levels[index].waiting += waiting;
      if (waiting == 0) continue;
      ++levels_with_waiting_;
      for (const Entry& entry : levels[index].entries) is_waited_for_[static_cast<std::size_t>(entry.rank)] = true;
    }
  }

  void find_mismatch(std::uint32_t group, std::span<const Entry> entries) {
    if (out_.mismatch) return;
    for (std::size_t begin = 0; begin < entries.size();) {
      std::map<std::pair<std::string_view, std::uint32_t>, std::vector<std::int32_t>> sides;
      std::size_t end = begin;
      for (; end < entries.size() && entries[end].enqueued == entries[begin].enqueued; ++end) {
        const GroupFact* fact = entries[end].fact;
        if (fact == nullptr || (fact->retired && !entries[end].is_in_flight)) continue;
        const std::pair key(std::string_view(fact->operation),
                            has_equal_sizes(fact->operation) ? fact->digest : std::uint32_t{0});
        if (sides.size() < kSides || sides.contains(key)) sides[key].push_back(entries[end].rank);
      }
      if (are_different(sides)) return note_mismatch(group, entries[begin].enqueued, sides);
      begin = end;
    }
  }

  static bool are_different(const auto& sides) {
    for (auto one = sides.begin(); one != sides.end(); ++one) {
      for (auto other = std::next(one); other != sides.end(); ++other) {
        const auto& [operation, digest] = one->first;
        const auto& [other_operation, other_digest] = other->first;
        if (!operation.empty() && !other_operation.empty() && operation != other_operation) return true;
        if (digest != 0 && other_digest != 0 && digest != other_digest) return true;
      }
    }
    return false;
  }

  void note_mismatch(std::uint32_t group, std::int64_t number, const auto& sides) {
    WaitWalk::Mismatch mismatch;
    mismatch.group = facts_.groups[group].name;
    mismatch.number = number;
    for (const auto& [key, ranks] : sides) {
      mismatch.sides.push_back({std::string(key.first), key.second, RankRuns::of(ranks)});
    }
    // No rank is on two sides, so that their first ones tell equally great ones apart.
    std::ranges::sort(mismatch.sides, {},
                      [](const auto& side) { return std::tuple(side.ranks.size(), side.ranks.front()); });
    mismatch.is_even = mismatch.sides[0].ranks.size() == mismatch.sides[1].ranks.size();
    out_.mismatch = std::move(mismatch);
  }

  void look_at_partners() {
    std::map<std::pair<std::int32_t, std::int32_t>, const GroupFact*> pairs;
    for (const GroupFact& fact : facts_.facts) {
      if (!fact.partner || fact.group >= facts_.groups.size()) continue;
      fact.ranks.for_each([&](std::int32_t rank) {
        if (rank != *fact.partner) pairs.emplace(std::pair(rank, *fact.partner), &fact);
      });
    }
    for (const auto& [pair, fact] : pairs) {
      const auto [rank, partner] = pair;
      waits_[static_cast<std::size_t>(rank)] = true;
      if (pairs.contains({partner, rank})) {
        note_stuck(fact->group, RankRuns::of({rank, partner}));
      } else if (!facts_.complete.contains(partner)) {
        maybe_.push_back(partner);
      } else {
        ++levels_with_waiting_;
        waits_for_[static_cast<std::size_t>(rank)].push_back(partner);
        is_waited_for_[static_cast<std::size_t>(partner)] = true;
        partners_.emplace(partner, std::pair(rank, fact));
      }
    }
  }

  RankRuns unseen() const {
    std::vector<RankRuns> parts{facts_.complete};
    for (const GroupFact& fact : facts_.facts) parts.push_back(fact.ranks);
    const RankRuns seen = united(parts);
    RankRuns out;
    for (std::int32_t rank = 0; rank < facts_.world_size; ++rank) {
      if (!seen.contains(rank)) out.add(rank);
    }
    return out;
  }

  void find_culprits() {
    std::vector<std::int32_t> ranks;
    for (std::size_t rank = 0; rank < world_; ++rank) {
      // Where nothing is known of it in some group, it may wait there.
      if (is_waited_for_[rank] && !waits_[rank] && !is_unknown_[rank]) ranks.push_back(static_cast<std::int32_t>(rank));
    }
    if (ranks.empty()) return;
    // For each of them the level in which most others wait for it.
    std::map<std::int32_t, const Level*> best;
    const RankRuns culprits = RankRuns::of(ranks);
    for (const Level& level : levels_) {
      if (level.waiting == 0) continue;
      for (const Entry& entry : level.entries) {
        if (!culprits.contains(entry.rank)) continue;
        const Level*& known = best[entry.rank];
        if (known == nullptr || known->waiting < level.waiting) known = &level;
      }
    }
    for (const std::int32_t rank : ranks) {
      const auto level = best.find(rank);
      const bool is_explained = out_.culprits.size() < bounds::kCulprits;
      out_.culprits.push_back({.rank = rank, .behind = {}});
      if (!is_explained) continue;
      out_.culprits.back().behind = level == best.end() ? behind_as_partner(rank) : behind_in(*level->second);
    }
  }

  WaitWalk::Behind behind_in(const Level& level) const {
    const std::int64_t reached = level.entries.front().enqueued;
    WaitWalk::Behind behind{.group = facts_.groups[level.group].name, .reached = reached};
    // The group's entries are sorted: what is above begins where this level ends.
    const std::vector<Entry>& all = entries_[level.group];
    const auto begin = static_cast<std::size_t>(level.entries.data() - all.data()) + level.entries.size();
    std::vector<std::int32_t> waiting;
    for (const Entry& entry : std::span(all).subspan(begin)) {
      if (!entry.is_in_flight || entry.retired < reached) continue;
      if (waiting.empty()) {
        behind.number = entry.retired + 1;
        behind.operation = entry.fact->operation;
      }
      waiting.push_back(entry.rank);
    }
    behind.waiting = RankRuns::of(std::move(waiting));
    return behind;
  }

  WaitWalk::Behind behind_as_partner(std::int32_t partner) const {
    const auto found = partners_.find(partner);
    if (found == partners_.end()) return {};
    const auto& [rank, fact] = found->second;
    return {.group = facts_.groups[fact->group].name,
            .operation = fact->operation,
            .number = fact->enqueued,
            .waiting = RankRuns::of({rank})};
  }

  // --- Tarjan's strongly connected components, without recursion ---

  std::size_t edges_of(std::size_t node) const {
    if (node < world_) return waits_in_level_[node].size() + waits_for_[node].size();
    const Level& level = levels_[node - world_];
    return level.entries.size() + (level.is_lowest ? 0 : 1);
  }

  std::size_t edge(std::size_t node, std::size_t index) const {
    if (node < world_) {
      const std::vector<std::uint32_t>& levels = waits_in_level_[node];
      if (index < levels.size()) return world_ + levels[index];
      return static_cast<std::size_t>(waits_for_[node][index - levels.size()]);
    }
    const Level& level = levels_[node - world_];
    if (index < level.entries.size()) return static_cast<std::size_t>(level.entries[index].rank);
    return node - 1;
  }

  // All ranks of components with more than one node.
  RankRuns cycle() const {
    constexpr std::uint32_t kUnseen = std::numeric_limits<std::uint32_t>::max();
    struct Visit {
      std::size_t node;
      std::size_t next_edge;
    };
    const std::size_t nodes = world_ + levels_.size();
    std::vector<std::uint32_t> index(nodes, kUnseen), low(nodes, 0);
    std::vector<char> is_open(nodes, 0);
    std::vector<std::size_t> open;
    std::vector<Visit> path;
    std::vector<std::int32_t> ranks;
    std::uint32_t next_index = 0;
    const auto enter = [&](std::size_t node) {
      index[node] = low[node] = next_index++;
      is_open[node] = 1;
      open.push_back(node);
      path.push_back({node, 0});
    };
    const auto close = [&](std::size_t node) {
      const bool is_alone = open.back() == node;
      for (bool is_done = false; !is_done;) {
        const std::size_t member = open.back();
        open.pop_back();
        is_open[member] = 0;
        if (!is_alone && member < world_) ranks.push_back(static_cast<std::int32_t>(member));
        is_done = member == node;
      }
    };
    for (std::size_t root = 0; root < world_; ++root) {
      if (index[root] != kUnseen) continue;
      enter(root);
      while (!path.empty()) {
        Visit& visit = path.back();
        const std::size_t node = visit.node;
        if (visit.next_edge < edges_of(node)) {
          const std::size_t to = edge(node, visit.next_edge++);
          if (index[to] == kUnseen) {
            enter(to);
          } else if (is_open[to]) {
            low[node] = std::min(low[node], index[to]);
          }
          continue;
        }
        path.pop_back();
        if (!path.empty()) low[path.back().node] = std::min(low[path.back().node], low[node]);
        if (low[node] == index[node]) close(node);
      }
    }
    return RankRuns::of(std::move(ranks));
  }

  const WaitFacts& facts_;
  const std::size_t world_;
  std::vector<std::vector<const GroupFact*>> by_group_;
  std::vector<std::vector<Entry>> entries_;  // by group
  std::vector<Level> levels_;
  std::size_t levels_with_waiting_ = 0;  // and partners
  std::vector<std::uint32_t> known_in_;  // by rank: 1 + the last group in which something is known of it
  std::vector<char> is_unknown_;         // by rank: in any group
  std::vector<char> waits_;              // by rank
  std::vector<std::vector<std::uint32_t>> waits_in_level_;
  std::vector<std::vector<std::int32_t>> waits_for_;
  std::vector<char> is_waited_for_;
  std::map<std::int32_t, std::pair<std::int32_t, const GroupFact*>> partners_;
  std::vector<std::uint32_t> level_groups_;
  std::vector<RankRuns> stuck_members_;
  std::vector<std::int32_t> maybe_;
  WaitWalk out_;
};

}  // namespace

WaitWalk walk(const WaitFacts& facts) {
  if (facts.world_size <= 0) return {};
  return Walker(facts).walk();
}

}  // namespace elastic::hang
