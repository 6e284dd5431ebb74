#pragma once

#include <cstddef>
#include <cstdint>

#include "health/messages/messages.h"
#include "health/probe/attempt.h"

// The all-gather of a ring of nodes, in which each is connected to the previous and the next one. Place 0 is the
// leader:
//
//   repeatedly   "r" goes around the ring; each node passes it on when it is ready, which is after it has verified the
//   last
//                all-gather. Then the leader's word goes to the last node: "m" for one more all-gather, "e" for the
//                end. After "m" a node begins: in each of N - 1 steps it sends to the next node the block that it
//                received last (at first its own) and receives one from the previous node.
//
// A node that is further from the leader begins later, but the blocks reach it on the same way, so the time is that of
// a common beginning and one hop. No node keeps the blocks of all: with many nodes that would be gigabytes.
namespace elastic::health {

// All members have the same settings.
struct RingSettings {
  std::size_t bytes = kExchangeBytes;  // the size of each node's block, a multiple of 8
  int repetitions = 5;                 // how many all-gathers are measured, after one for warm-up
  std::int64_t enough_ms = 2000;       // after so long, one measured all-gather is enough
};

// `previous` and `next`: connected stream sockets to the neighbours that `order` names, blocking or not; in a ring of
// two they are the same. The result has the median time from "m" until the last block has arrived. In the first
// repetition each block is verified at each node; later only the last one that reaches a node, which has passed all
// others. Fails where another node does not finish by the deadline.
RingResult all_gather(int previous, int next, const RingOrder& order, const RingSettings& settings,
                      const Deadline& deadline);

}  // namespace elastic::health
