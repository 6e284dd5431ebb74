#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol/messages.h"

// Who is in a round and in which order. A node holds a seat; the order of the seats is the order of the
// node ranks. Seats keep a node's rank from one round to the next and may have gaps; node ranks have none.
namespace elastic::membership {

// What a node brings into a round.
struct NodeShape {
  int local_world_size = 0;
  std::string role;
};

// Gives each node its place, in the order given (the order is the node rank). Global ranks run through
// all workers, role ranks through those of one role name; torchrun's rule, so nodes may differ in size.
std::vector<protocol::NodePlace> assign_places(const std::vector<NodeShape>& nodes);

// Orders texts as people do: runs of digits count by value (node2 before node10, 10.0.0.9 before
// 10.0.0.10), all else by bytes. Texts that differ only in leading zeros are ordered by bytes. A strict
// total order.
bool natural_less(std::string_view a, std::string_view b);

// A node that could be in the round.
struct Candidate {
  std::optional<int> claimed_rank;  // what its user said its node rank is
  std::optional<int> seat;          // the one it had in the last round, if it was in it
  std::string address;              // how it calls itself
  std::uint64_t arrival = 0;        // counted up: a lower one joined earlier
};

// Which `size` of the candidates form the round, as indices, the foremost first: those of the last round
// before others, so that a newcomer never drives out a survivor; then claimed ranks, the lowest first;
// then by seat; then by arrival. All of them if they are fewer.
std::vector<std::size_t> choose_members(const std::vector<Candidate>& candidates, int size);

// A seat whose node was in the last round and is not there any more.
struct VacantSeat {
  int seat = 0;
  std::string address;
};

struct Seated {
  std::size_t candidate = 0;  // index
  int seat = 0;
  bool operator==(const Seated&) const = default;
};

// Gives each of the chosen a seat of its own; sorted by seat, so that the position is the node rank.
//   1. A claimed rank is the seat. Of two that claim one, the node that has it already wins, or the
//      earlier; the other is seated as if it claimed nothing (the coordinator refuses it before that).
//   2. Who was in the last round keeps its seat. If that is claimed by another now, it is seated as in 3, before
//      the newcomers.
//   3. The others take vacant seats: that of the own address first (a node that came back), then, in natural
//      order of addresses, the lowest (a replacement takes the lost node's rank).
//   4. Who finds none sits behind all others, in the same order.
// Claims and seats below 0 count as none.
std::vector<Seated> seat_members(const std::vector<Candidate>& chosen, const std::vector<VacantSeat>& vacant);

}  // namespace elastic::membership
