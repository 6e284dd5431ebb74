#include "rendezvous/election/next_leaders.h"

#include <algorithm>
#include <map>

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
  const std::size_t most = kMostNextLeaders - (has_host ? 1 : 0);
  for (std::size_t turn = 0, before = 0; chosen.size() < most; ++turn, before = chosen.size()) {
    for (const auto& group : groups) {
      if (turn < group.size() && chosen.size() < most) chosen.push_back(group[turn]->node);
    }
    if (chosen.size() == before) break;
  }
  if (has_host) chosen.push_back(host->node);
  return chosen;
}

std::optional<std::int64_t> NextLeaderDialing::again_at_ms(std::int64_t dialled_ms, bool has_refused,
                                                           std::int64_t now_ms) const {
  if (now_ms >= hurries_until_ms_) return {};
  // A whole turn of refusals still takes a step, so that nodes that are all dead are not dialled without a pause.
  const bool is_turn_over = next_ % count_ == 0;
  return has_refused && !is_turn_over ? now_ms : std::max(now_ms, dialled_ms + kStepMs);
}

}  // namespace elastic::election
