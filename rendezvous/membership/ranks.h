#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol/messages.h"

// Which nodes are in a round, and in which order. Each node has a rank slot; node ranks follow the order of the slots.
// Slots keep a node's rank from one round to the next. They may have gaps, which node ranks do not.
namespace elastic::membership {

// The workers that a node has in a round.
struct NodeShape {
  int local_world_size = 0;
  std::string role;
};

// The places of the nodes; the order of `nodes` is that of the node ranks. Global ranks count all workers, role ranks
// those of one role. This is torchrun's rule: nodes may differ in size.
std::vector<protocol::NodePlace> assign_places(const std::vector<NodeShape>& nodes);

// Orders names as people do: runs of digits compare by value (node2 before node10, 10.0.0.9 before 10.0.0.10), all else
// by bytes. Names that differ only in leading zeros compare by bytes. It is a strict total order.
bool natural_less(std::string_view a, std::string_view b);

// A node that could be in the round.
struct EligibleNode {
  std::optional<int> claimed_rank;  // --node-rank, if the user gave it
  std::optional<int> slot;          // its slot in the last round, if it was in that
  std::string address;              // the name that it gives itself
  std::uint64_t arrival = 0;        // its number in the order of joining
};

// Which `size` of the nodes form the round, as indices in the order of preference: nodes of the last round before
// others, so that a newcomer never replaces a survivor; then claimed ranks, the lowest first; then by slot; then by
// arrival. All of them if they are fewer than `size`.
std::vector<std::size_t> choose_members(const std::vector<EligibleNode>& eligible, int size);

// A slot whose node was in the last round and is gone.
struct VacantSlot {
  int slot = 0;
  std::string address;
};

struct InSlot {
  std::size_t node = 0;  // index
  int slot = 0;
  bool operator==(const InSlot&) const = default;
};

// Gives each of the chosen nodes a slot of its own. The result is sorted by slot: a position in it is the node rank.
//   1. A claimed rank is the slot. If two nodes claim one rank, the node that has it already gets it, or the one that
//      joined earlier; the other is placed as if it claimed nothing (the coordinator rejects it before that).
//   2. A node of the last round keeps its slot. If another node claims that slot now, rule 3 holds, and the node comes
//      before the newcomers.
//   3. The others take vacant slots: the slot of their own address first (the node came back), then, in natural order
//      of addresses, the lowest slot (a replacement takes the lost node's rank).
//   4. Nodes without a vacant slot get slots after all others, in the same order.
// Claims and slots below 0 are ignored.
std::vector<InSlot> slot_members(const std::vector<EligibleNode>& chosen, const std::vector<VacantSlot>& vacant);

}  // namespace elastic::membership
