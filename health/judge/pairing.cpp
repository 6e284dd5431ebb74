#include "health/judge/pairing.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace elastic::health {
namespace {

bool have_met(const std::vector<PairTest>& tests, int one, int other) {
  return std::ranges::any_of(tests, [&](const PairTest& test) { return test.has(one) && test.has(other); });
}

// Nodes by what is known of them; the good ones fastest first.
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

// Each suspect with a good node, one that it has not met if there is one. Both are taken out of `nodes`.
std::vector<Group> match_suspects(Sorted& nodes, const std::vector<PairTest>& before) {
  std::vector<Group> groups;
  std::vector<int> left;
  for (const int suspect : nodes.suspects) {
    auto partner = std::ranges::find_if(nodes.good, [&](int node) { return !have_met(before, node, suspect); });
    if (partner == nodes.good.end()) partner = nodes.good.begin();
    if (partner == nodes.good.end()) {
      left.push_back(suspect);
      continue;
    }
    groups.push_back({*partner, suspect});
    nodes.good.erase(partner);
  }
  // A good node has time for two.
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

// Fastest with slowest; the middle one of an odd number joins the last pair. `nodes`: the fastest first.
void match_ends(const std::vector<int>& nodes, std::vector<Group>& out) {
  const std::size_t pairs = nodes.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i) out.push_back({nodes[i], nodes[nodes.size() - 1 - i]});
  if (nodes.size() % 2 == 1) join_small_group(nodes[pairs], out);
}

}  // namespace

std::vector<std::optional<double>> best_times(std::size_t nodes, const std::vector<PairTest>& tests) {
  std::vector<std::optional<double>> best(nodes);
  for (const PairTest& test : tests) {
    if (!test.passed) continue;
    for (const int node : {test.low, test.high}) {
      std::optional<double>& ms = best[static_cast<std::size_t>(node)];
      ms = std::min(ms.value_or(test.time_ms), test.time_ms);
    }
  }
  return best;
}

std::vector<std::pair<int, int>> tests_of(const Group& group) {
  std::vector<std::pair<int, int>> tests;
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t k = i + 1; k < group.size(); ++k) tests.push_back(std::minmax({group[i], group[k]}));
  }
  return tests;
}

std::vector<Group> neighbours(int nodes) {
  std::vector<Group> groups;
  for (int node = 0; node + 1 < nodes; node += 2) groups.push_back({node, node + 1});
  if (nodes % 2 == 0) return groups;
  join_small_group(nodes - 1, groups);
  return groups;
}

std::vector<Group> second_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& first) {
  Sorted nodes = sorted(facts);
  std::vector<Group> groups = match_suspects(nodes, first);
  // Suspects for whom there is nobody are slower than anybody.
  nodes.good.insert(nodes.good.end(), nodes.suspects.begin(), nodes.suspects.end());
  match_ends(nodes.good, groups);
  return groups;
}

std::vector<Group> third_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& before,
                               double usual_ms) {
  Sorted nodes = sorted(facts, usual_ms);
  return match_suspects(nodes, before);
}

}  // namespace elastic::health
