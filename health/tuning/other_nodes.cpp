#include "health/tuning/other_nodes.h"

#include <algorithm>
#include <cstddef>

namespace elastic::tuning {

void OtherNodes::begin_round(int count) {
  nodes_.clear();
  nodes_.resize(static_cast<std::size_t>(count));
}

void OtherNodes::heard(int node_rank, const NodeState& state) {
  if (node_rank < 1 || node_rank > static_cast<int>(nodes_.size())) return;
  if (state.cpus < 1 || state.free_bytes.value_or(0) < 0) return;
  nodes_[static_cast<std::size_t>(node_rank) - 1].state = state;
}

std::optional<int> OtherNodes::silent() const { return not_read(INT64_MIN); }

std::optional<int> OtherNodes::not_read(std::int64_t version) const {
  const auto found = std::ranges::find_if(
      nodes_, [version](const Node& node) { return !node.state || node.state->version < version; });
  if (found == nodes_.end()) return {};
  return static_cast<int>(found - nodes_.begin()) + 1;
}

std::optional<std::uint64_t> OtherNodes::least_free(std::optional<std::uint64_t> own) const {
  for (const Node& node : nodes_) {
    if (!own || !node.state || !node.state->free_bytes) return {};
    own = std::min(*own, static_cast<std::uint64_t>(*node.state->free_bytes));
  }
  return own;
}

int OtherNodes::least_cpus(int own) const {
  for (const Node& node : nodes_) {
    if (node.state) own = std::min(own, node.state->cpus);
  }
  return own;
}

void OtherNodes::mark() {
  for (Node& node : nodes_) node.marked_bytes = node.state ? node.state->free_bytes : std::nullopt;
}

std::uint64_t OtherNodes::most_taken() const {
  std::int64_t most = 0;
  for (const Node& node : nodes_) {
    if (!node.marked_bytes || !node.state || !node.state->free_bytes) continue;
    most = std::max(most, *node.marked_bytes - *node.state->free_bytes);
  }
  return static_cast<std::uint64_t>(most);
}

}  // namespace elastic::tuning
