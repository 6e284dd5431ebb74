#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// The position of a node in a round (rendezvous/membership/ranks.h).
struct Seat {
  protocol::AgentId agent = 0;
  int seat = 0;
  std::string address = {};
};

// The seats of the last round, by node rank once all of them are known.
using Seats = std::vector<Seat>;

inline bool has_seat(const Seats& seats, protocol::AgentId agent) {
  return std::ranges::find(seats, agent, &Seat::agent) != seats.end();
}

}  // namespace elastic::coordinator
