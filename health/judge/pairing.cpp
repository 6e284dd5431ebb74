#include "health/judge/pairing.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace elastic::health {
namespace {

bool have_met(const std::vector<PairTest>& tests, int one, int other) {
  return std::ranges::any_of(tests, [&](const PairTest& test) { return test.has(one) && test.has(other); });
}

// The nodes that are fit by themselves. `good`: the fastest first.
struct Sorted {
  std::vector<int> good;
  std::vector<int> suspects;
};

Sorted sorted(const std::vector<StageFacts>& facts, double usual_ms = std::numeric_limits<double>::infinity()) {
  Sorted out;
  for (int node = 0; node < static_cast<int>(facts.size()); ++node) {
    const StageFacts& known = facts[static_cast<std::size_t>(node)];
    if (known.is_fit_by_itself) (known.time_ms && *known.time_ms <= usual_ms ? out.good : out.suspects).push_back(node);
  }
  std::ranges::stable_sort(out.good, {}, [&](int node) { return *facts[static_cast<std::size_t>(node)].time_ms; });
  return out;
}

// Puts each suspect into a group with a good node: one of its rack that it has not met, else one that it has not met,
// else any. Both are taken out of `nodes`.
std::vector<Group> match_suspects(Sorted& nodes, const std::vector<PairTest>& before, const Racks& racks) {
  std::vector<Group> groups;
  std::vector<int> left;
  for (const int suspect : nodes.suspects) {
    const auto is_new = [&](int node) { return !have_met(before, node, suspect); };
    auto partner =
        std::ranges::find_if(nodes.good, [&](int node) { return are_near(racks, node, suspect) && is_new(node); });
    if (partner == nodes.good.end()) partner = std::ranges::find_if(nodes.good, is_new);
    if (partner == nodes.good.end()) partner = nodes.good.begin();
    if (partner == nodes.good.end()) {
      left.push_back(suspect);
      continue;
    }
    groups.push_back({*partner, suspect});
    nodes.good.erase(partner);
  }
  // Each good node takes a second suspect where suspects are left.
  const std::size_t seconds = std::min(left.size(), groups.size());
  for (std::size_t i = 0; i < seconds; ++i) groups[i].push_back(left[i]);
  nodes.suspects.assign(left.begin() + static_cast<std::ptrdiff_t>(seconds), left.end());
  return groups;
}

void join_small_group(int node, std::vector<Group>& groups) {
  if (groups.empty()) {
    groups.push_back({node});
    return;
  }
  const auto smallest = std::ranges::min_element(groups.rbegin(), groups.rend(), {}, &Group::size);
  smallest->push_back(node);
}

// Puts the fastest into a group with the slowest, of another rack as long as there is one. Of an odd number the middle
// one joins the last pair. `nodes`: the fastest first.
void match_ends(std::vector<int> nodes, const Racks& racks, std::vector<Group>& out) {
  std::ranges::reverse(nodes);
  while (nodes.size() > 1) {
    const int fast = nodes.back();
    nodes.pop_back();
    auto slow = std::ranges::find_if(nodes, [&](int node) { return !are_near(racks, fast, node); });
    if (slow == nodes.end()) slow = nodes.begin();
    out.push_back({fast, *slow});
    nodes.erase(slow);
  }
  if (!nodes.empty()) join_small_group(nodes.front(), out);
}

// Puts two at a time into a group, in the order of `nodes`.
void match_neighbours(const std::vector<int>& nodes, std::vector<Group>& out) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) groups.push_back({nodes[i], nodes[i + 1]});
  // One that is left over joins another group where there is one.
  if (nodes.size() % 2 == 1) join_small_group(nodes.back(), groups.empty() ? out : groups);
  out.insert(out.end(), groups.begin(), groups.end());
}

}  // namespace

std::vector<std::optional<double>> best_times(std::size_t nodes, const std::vector<PairTest>& tests) {
  struct Best {
    std::optional<double> near = {};
    std::optional<double> far = {};
  };
  std::vector<Best> best(nodes);
  for (const PairTest& test : tests) {
    if (!test.passed) continue;
    for (const int node : {test.low, test.high}) {
      Best& of = best[static_cast<std::size_t>(node)];
      std::optional<double>& ms = test.crosses ? of.far : of.near;
      ms = std::min(ms.value_or(test.time_ms), test.time_ms);
    }
  }
  std::vector<std::optional<double>> out;
  std::ranges::transform(best, std::back_inserter(out), [](const Best& of) { return of.near ? of.near : of.far; });
  return out;
}

std::vector<std::pair<int, int>> tests_of(const Group& group) {
  std::vector<std::pair<int, int>> tests;
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t k = i + 1; k < group.size(); ++k) tests.push_back(std::minmax({group[i], group[k]}));
  }
  return tests;
}

Racks racks_of(const std::vector<std::string>& names) {
  std::map<std::string_view, int> numbers;
  Racks racks;
  for (const std::string& name : names) {
    racks.push_back(numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second);
  }
  return racks;
}

bool are_near(const Racks& racks, int one, int other) {
  return racks.empty() || racks.at(static_cast<std::size_t>(one)) == racks.at(static_cast<std::size_t>(other));
}

std::vector<Group> neighbours(int nodes, const Racks& racks) {
  std::map<int, std::vector<int>> members;
  for (int node = 0; node < nodes; ++node)
    members[racks.empty() ? 0 : racks.at(static_cast<std::size_t>(node))].push_back(node);
  std::vector<Group> groups;
  std::vector<int> alone;
  for (const auto& [rack, of_rack] : members) {
    if (of_rack.size() == 1) {
      alone.push_back(of_rack.front());
    } else {
      match_neighbours(of_rack, groups);
    }
  }
  match_neighbours(alone, groups);
  return groups;
}

std::vector<Group> second_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& first,
                                const Racks& racks) {
  Sorted nodes = sorted(facts);
  std::vector<Group> groups = match_suspects(nodes, first, racks);
  // Suspects for which no good node is left count as the slowest.
  nodes.good.insert(nodes.good.end(), nodes.suspects.begin(), nodes.suspects.end());
  match_ends(std::move(nodes.good), racks, groups);
  return groups;
}

std::vector<Group> third_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& before,
                               double usual_ms, const Racks& racks) {
  Sorted nodes = sorted(facts, usual_ms);
  return match_suspects(nodes, before, racks);
}

int ring_turn(int from, int members) {
  const bool closes_odd_ring = from + 1 == members && members % 2 == 1;
  return closes_odd_ring ? 2 : members == 2 ? 0 : from % 2;
}

}  // namespace elastic::health
