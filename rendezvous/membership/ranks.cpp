#include "rendezvous/membership/ranks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace elastic::membership {

std::vector<protocol::NodePlace> assign_places(const std::vector<NodeShape>& nodes) {
  std::vector<protocol::NodePlace> places;
  places.reserve(nodes.size());
  int world_size = 0;
  std::map<std::string, int> role_sizes;
  for (const NodeShape& node : nodes) {
    int& role_size = role_sizes[node.role];
    places.push_back({.node_rank = static_cast<int>(places.size()),
                      .node_count = static_cast<int>(nodes.size()),
                      .base_rank = world_size,
                      .base_role_rank = role_size});
    world_size += node.local_world_size;
    role_size += node.local_world_size;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i].world_size = world_size;
    places[i].role_world_size = role_sizes[nodes[i].role];
  }
  return places;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The run of digits that `text` begins with.
std::string_view digits_of(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  return text.substr(0, length);
}

// Compares two numbers of any length: the result is below, at or above 0 if the first is less, equal or greater.
int compare_values(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::string_view rest_a = a;
  std::string_view rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    if (is_digit(rest_a.front()) && is_digit(rest_b.front())) {
      const std::string_view number_a = digits_of(rest_a);
      const std::string_view number_b = digits_of(rest_b);
      if (const int order = compare_values(number_a, number_b); order != 0) return order < 0;
      rest_a.remove_prefix(number_a.size());
      rest_b.remove_prefix(number_b.size());
      continue;
    }
    // All digits compare alike with any byte that is none, so that it does not matter which digit of a number this is.
    const auto byte_a = static_cast<unsigned char>(rest_a.front());
    const auto byte_b = static_cast<unsigned char>(rest_b.front());
    if (byte_a != byte_b) return byte_a < byte_b;
    rest_a.remove_prefix(1);
    rest_b.remove_prefix(1);
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  return a < b;
}

namespace {

// An absent value comes after all others.
std::int64_t or_last(std::optional<int> value) { return value ? *value : std::numeric_limits<std::int64_t>::max(); }

std::optional<int> valid(std::optional<int> number) { return number && *number >= 0 ? number : std::nullopt; }

std::vector<std::size_t> all_indices(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// The slots that have been given so far; each is given once.
class SlotPlan {
 public:
  SlotPlan(const std::vector<EligibleNode>& chosen, const std::vector<VacantSlot>& vacant)
      : chosen_(chosen), vacant_(vacant), slots_(chosen.size()) {}

  std::vector<InSlot> make() {
    slot_claims();
    keep_slots();
    std::vector<std::size_t> waiting = unseated();
    take_vacant(waiting);
    sit_behind(waiting);

    std::vector<InSlot> result;
    result.reserve(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) result.push_back({.node = i, .slot = *slots_[i]});
    std::ranges::sort(result, {}, &InSlot::slot);
    return result;
  }

 private:
  bool give(std::size_t node, int slot) {
    if (!taken_.insert(slot).second) return false;
    slots_[node] = slot;
    highest_ = std::max<std::int64_t>(highest_, slot);
    return true;
  }

  void slot_claims() {
    std::vector<std::size_t> order = all_indices(chosen_.size());
    std::ranges::sort(order, {}, [this](std::size_t i) {
      const EligibleNode& node = chosen_[i];
      return std::tuple(node.slot != node.claimed_rank, !valid(node.slot), node.arrival, i);
    });
    for (const std::size_t i : order) {
      if (const auto claim = valid(chosen_[i].claimed_rank)) give(i, *claim);
    }
  }

  void keep_slots() {
    std::vector<std::size_t> order = all_indices(chosen_.size());
    std::ranges::sort(order, {}, [this](std::size_t i) { return std::tuple(chosen_[i].arrival, i); });
    for (const std::size_t i : order) {
      if (const auto slot = valid(chosen_[i].slot); slot && !slots_[i]) give(i, *slot);
    }
  }

  // The nodes without a slot, in the order in which they get the free ones.
  std::vector<std::size_t> unseated() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i]) order.push_back(i);
    }
    std::ranges::sort(order, [this](std::size_t a, std::size_t b) {
      const EligibleNode& left = chosen_[a];
      const EligibleNode& right = chosen_[b];
      const std::int64_t slot_a = or_last(valid(left.slot));
      const std::int64_t slot_b = or_last(valid(right.slot));
      if (slot_a != slot_b) return slot_a < slot_b;
      if (left.address != right.address) return natural_less(left.address, right.address);
      return std::tie(left.arrival, a) < std::tie(right.arrival, b);
    });
    return order;
  }

  // Nodes that get a slot are removed from `waiting`.
  void take_vacant(std::vector<std::size_t>& waiting) {
    std::vector<VacantSlot> free;
    for (const VacantSlot& slot : vacant_) {
      if (slot.slot >= 0) free.push_back(slot);
    }
    std::ranges::stable_sort(free, {}, &VacantSlot::slot);

    std::unordered_map<std::string_view, std::vector<int>> by_address;  // the lowest slot last
    for (std::size_t i = free.size(); i-- > 0;) {
      if (!free[i].address.empty()) by_address[free[i].address].push_back(free[i].slot);
    }
    std::erase_if(waiting, [&](std::size_t i) {
      const auto own = by_address.find(chosen_[i].address);
      if (own == by_address.end()) return false;
      while (!own->second.empty()) {
        const int slot = own->second.back();
        own->second.pop_back();
        if (give(i, slot)) return true;
      }
      return false;
    });

    std::size_t next = 0;
    std::erase_if(waiting, [&](std::size_t i) {
      while (next < free.size()) {
        if (give(i, free[next++].slot)) return true;
      }
      return false;
    });
  }

  void sit_behind(const std::vector<std::size_t>& waiting) {
    // If a node claims the highest of all numbers, no slot comes after it, and the lowest free slots are given.
    const bool room = highest_ + static_cast<std::int64_t>(waiting.size()) <= std::numeric_limits<int>::max();
    // In a first round nodes without a claim fill the gaps between claims, so that a claimed rank is the node rank.
    const bool is_first = vacant_.empty() && std::ranges::none_of(chosen_, [](const EligibleNode& node) {
                            return valid(node.slot).has_value();
                          });
    int next = room && !is_first ? static_cast<int>(highest_ + 1) : 0;
    for (const std::size_t i : waiting) {
      while (!give(i, next)) ++next;
    }
  }

  const std::vector<EligibleNode>& chosen_;
  const std::vector<VacantSlot>& vacant_;
  std::vector<std::optional<int>> slots_;
  std::unordered_set<int> taken_;
  std::int64_t highest_ = -1;
};

}  // namespace

std::vector<std::size_t> choose_members(const std::vector<EligibleNode>& eligible, int size) {
  std::vector<std::size_t> order = all_indices(eligible.size());
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const EligibleNode& node = eligible[i];
    return std::tuple(!valid(node.slot), or_last(valid(node.claimed_rank)), or_last(valid(node.slot)), node.arrival, i);
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(size, 0))));
  return order;
}

std::vector<InSlot> slot_members(const std::vector<EligibleNode>& chosen, const std::vector<VacantSlot>& vacant) {
  return SlotPlan(chosen, vacant).make();
}

}  // namespace elastic::membership
