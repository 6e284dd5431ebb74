#include "rendezvous/election/next_leaders.h"

#include <algorithm>
#include <map>

#include "src/base/limits.h"

namespace elastic::election {

std::vector<NextLeader> choose_next_leaders(const std::vector<NextLeaderCandidate>& nodes) {
  const auto host = std::ranges::find(nodes, true, &NextLeaderCandidate::hosts_coordinator);
  const std::string home = host == nodes.end() ? "" : host->group;
  // The groups in the order of their lowest node rank, the coordinator's own last.
  std::vector<std::vector<const NextLeaderCandidate*>> groups;
  std::map<std::string, std::size_t> indices;
  for (const NextLeaderCandidate& node : nodes) {
    if (!node.can_be_reached || node.hosts_coordinator) continue;
    const bool begins_group = node.group.empty() || indices.try_emplace(node.group, groups.size()).second;
    if (begins_group) groups.emplace_back();
    (begins_group ? groups.back() : groups[indices.at(node.group)]).push_back(&node);
  }
  std::ranges::stable_partition(
      groups, [&](const auto& group) { return group.front()->group.empty() || group.front()->group != home; });
  std::vector<NextLeader> chosen;
  // The coordinator's own node is always in the list: its peer port shows the others whether the coordinator is dead.
  const bool has_host = host != nodes.end() && host->can_be_reached;
  // As many as a message has room for, and enough that one of them survives what a job survives.
  const std::size_t most = limits::kNextLeaders - (has_host ? 1 : 0);
  for (std::size_t turn = 0, before = 0; chosen.size() < most; ++turn, before = chosen.size()) {
    for (const auto& group : groups) {
      if (turn < group.size() && chosen.size() < most) chosen.push_back(group[turn]->node);
    }
    if (chosen.size() == before) break;
  }
  if (has_host) chosen.push_back(host->node);
  return chosen;
}

}  // namespace elastic::election
