#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/membership/roster.h"
#include "rendezvous/membership/training_port.h"
#include "rendezvous/protocol/messages.h"

// Which nodes form a round, and what they and others are told of it.
namespace elastic::coordinator {

// The position of a node in a round (rendezvous/membership/ranks.h).
struct Slot {
  protocol::AgentId agent = 0;
  int slot = 0;
  std::string address = {};
};

// The slots of the last round, by node rank once all of them are known.
using Slots = std::vector<Slot>;

inline bool has_slot(const Slots& slots, protocol::AgentId agent) {
  return std::ranges::find(slots, agent, &Slot::agent) != slots.end();
}

// A node of a round that is being formed.
struct RoundMember {
  protocol::AgentId agent = 0;
  int slot = 0;
  protocol::NodePlace place = {};
};

// The `size` ready nodes that form the next round, by node rank, with their slots and places. `last` are the slots of
// the last round. At least so many nodes are ready.
std::vector<RoundMember> choose_round(const membership::Roster& roster, const Slots& last, int size);

// What these nodes have told of HCCL's ports; without an entry for a node that has told nothing.
std::vector<membership::NodePorts> ports_of(const std::vector<RoundMember>& members, const membership::Roster& roster);

// Each node of the round has stopped, and its workers had succeeded before it was told to stop.
bool have_all_succeeded(const Slots& slots, const membership::Roster& roster);

// The numeric addresses of all these nodes with spaces between them, for the node that serves the round's store; empty
// if those of a node are not known, or if they are too many for a message.
std::string addresses_of(const std::vector<RoundMember>& members, const membership::Roster& roster);

// A digest of a round's members, which all of them get, so that a coordinator that takes the job over can tell whether
// two nodes report the same round.
std::uint64_t membership_digest(protocol::Incarnation incarnation, protocol::RoundNumber round,
                                const std::vector<protocol::AgentId>& agents);

}  // namespace elastic::coordinator
