#include "rendezvous/membership/ranks.h"

#include <map>

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

}  // namespace elastic::membership
