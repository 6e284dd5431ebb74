#pragma once

#include <string>
#include <vector>

#include "rendezvous/protocol/election_parts.h"

namespace elastic::election {

using protocol::NextLeader;

// A node of a round.
struct NextLeaderCandidate {
  NextLeader node = {};
  std::string group = {};  // --node-group: nodes of one group tend to fail together; empty: it has none
  bool can_be_reached = true;
  bool hosts_coordinator = false;
};

// The next leaders that go with a round, in the order in which they are dialled. Neighbours in the list are of
// different groups where there are several, other groups than the coordinator's come first, and within a group the
// lowest node rank. The coordinator's own node comes last, since it is most likely lost with the coordinator. `nodes`
// is in the order of the node ranks; a node without a group counts as a group of its own.
std::vector<NextLeader> choose_next_leaders(const std::vector<NextLeaderCandidate>& nodes);

}  // namespace elastic::election
