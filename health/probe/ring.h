#pragma once

#include <cstddef>
#include <cstdint>

#include "health/messages/messages.h"
#include "health/probe/attempt.h"

// The all-gather of a ring of nodes, each connected to the one before and the one behind it. Place 0 leads:
//
//   repeatedly   "r" goes around from node to node, each of which passes it on when it is ready, which says also that
//                it has found the last all-gather right; then the leader's word, "m" for one more, "e" for the end,
//                up to the last node. With "m" each node begins: in each of N - 1 steps it sends to the next the block
//                that it received last, first its own, and receives one from the previous.
//
// Who is further from the leader begins later, and the blocks come to it on the same way: the time of the whole is that
// of a common beginning and one hop. No node keeps the blocks of all: of many nodes that would be gigabytes.
namespace elastic::health {

// The same for all members.
struct RingSettings {
  std::size_t bytes = kExchangeBytes;  // of each node's block, a multiple of 8
  int repetitions = 5;                 // that count, after one that warms up
  std::int64_t enough_ms = 2000;       // after so long one that counts is enough
};

// `previous` and `next`: connected streams to the neighbours that `order` names, whether they block or not; of two
// members both are the same. The result's time is the median from "m" until the last block is there. In the first
// repetition each block is verified where it arrives; later only the last that comes to a node, which has been at all
// others. Fails where another has not done its part by the deadline.
RingResult all_gather(int previous, int next, const RingOrder& order, const RingSettings& settings,
                      const Deadline& deadline);

}  // namespace elastic::health
