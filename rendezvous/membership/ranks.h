#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol/messages.h"

// Which nodes are in a round, and in which order. Each node has a seat number; node ranks follow the order of the
// seats. Seats keep a node's rank from one round to the next. They may have gaps, which node ranks do not.
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
struct Candidate {
  std::optional<int> claimed_rank;  // --node-rank, if the user gave it
  std::optional<int> slot;          // its seat in the last round, if it was in it
  std::string address;              // the name that it gives itself
  std::uint64_t arrival = 0;        // its number in the order of joining
};

// Which `size` of the candidates form the round, as indices in the order of preference: nodes of the last round before
// others, so that a newcomer never replaces a survivor; then claimed ranks, the lowest first; then by seat; then by
// arrival. All candidates if they are fewer than `size`.
std::vector<std::size_t> choose_members(const std::vector<Candidate>& candidates, int size);

// A seat whose node was in the last round and is gone.
struct VacantSlot {
  int slot = 0;
  std::string address;
};

struct InSlot {
  std::size_t candidate = 0;  // index
  int slot = 0;
  bool operator==(const InSlot&) const = default;
};

// Gives each of the chosen nodes a seat of its own. The result is sorted by seat: a position in it is the node rank.
//   1. A claimed rank is the seat. If two nodes claim one rank, the node that has it already gets it, or the one that
//      joined earlier; the other is seated as if it claimed nothing (the coordinator rejects it before that).
//   2. A node of the last round keeps its seat. If another node claims that seat now, rule 3 holds, and the node comes
//      before the newcomers.
//   3. The others take vacant seats: the seat of their own address first (the node came back), then, in natural order
//      of addresses, the lowest seat (a replacement takes the lost node's rank).
//   4. Nodes without a vacant seat get seats after all others, in the same order.
// Claims and seats below 0 are ignored.
std::vector<InSlot> slot_members(const std::vector<Candidate>& chosen, const std::vector<VacantSlot>& vacant);

}  // namespace elastic::membership
