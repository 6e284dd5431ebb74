#pragma once

#include <cstddef>
#include <cstdint>

#include "health/messages/messages.h"
#include "health/probe/attempt.h"

// The test of two nodes over their connection. The node with the lower rank is the leader:
//
//   20 times     leader: one byte; follower: its wall clock in nanoseconds, 8 bytes. Then the same with roles swapped.
//   repeatedly   follower: "r" when it is ready; leader: "m" for one more exchange, "e" for the end. After "m" each
//   sends
//                a block and receives the other's at the same time, as in an all-gather of two ranks, and verifies it.
//
// Numbers are in the machine's byte order.
namespace elastic::health {

// Both ends have the same settings. For the same number of bytes in all, more and smaller blocks give a steadier median
// on a busy machine: with 64 probes on 2 cores, 5 blocks of 4 MiB made good pairs look like stragglers.
struct ExchangeSettings {
  std::size_t bytes = kExchangeBytes;  // the size of a block, a multiple of 8
  int repetitions = 11;                // how many exchanges are measured, after one for warm-up
  std::int64_t enough_ms = 2000;       // after so long, one measured exchange is enough
};

struct ExchangeFigures {
  double ms = 0;          // the median time of an exchange: from "m" until all is sent and received
  double latency_us = 0;  // half of the least round trip time
  double clock_ms = 0;    // how far the other node's wall clock is ahead of ours
};

// `socket`: a connected stream socket that is used for nothing else; it may be blocking or not. Fails where the other
// end does not finish by the deadline, and where bytes arrive wrong.
Attempt<ExchangeFigures> exchange(int socket, int rank, int peer, const ExchangeSettings& settings,
                                  const Deadline& deadline);

}  // namespace elastic::health
