#pragma once

#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"

namespace elastic::membership {

// What a node brings into a round.
struct NodeShape {
  int local_world_size = 0;
  std::string role;
};

// Gives each node its place, in the order given (the order is the node rank). Global ranks run through
// all workers, role ranks through those of one role name; torchrun's rule, so nodes may differ in size.
std::vector<protocol::NodePlace> assign_places(const std::vector<NodeShape>& nodes);

}  // namespace elastic::membership
