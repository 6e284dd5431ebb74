#pragma once

#include <cstddef>
#include <cstdint>

#include "health/messages/messages.h"
#include "health/probe/attempt.h"

// What the probes of two nodes do over their connection. The lower rank leads:
//
//   20 times     leader: one byte; follower: its wall clock, in nanoseconds, 8 bytes. Then the other way round.
//   repeatedly   follower: "r" when it is ready; leader: "m" for one more exchange, "e" for the end; with "m" each
//                sends a block and receives the other's at the same time, as an allgather of two does, and looks it
//                through.
//
// Numbers are as the machine has them.
namespace elastic::health {

// The same at both ends. Of as many bytes in all, more and smaller blocks have the steadier median on a crowded
// machine: with 64 probes on 2 cores, 5 blocks of 4 MiB let good pairs look like stragglers.
struct ExchangeSettings {
  std::size_t bytes = kExchangeBytes;  // of a block, a multiple of 8
  int repetitions = 11;                // that count, after one that warms up
  std::int64_t enough_ms = 2000;       // after so long one that counts is enough
};

struct ExchangeFigures {
  double ms = 0;          // the median of the exchanges: from "m" until all is sent and all is received
  double latency_us = 0;  // half of the least time of the bytes there and back
  double clock_ms = 0;    // how far the other's wall clock is ahead of ours
};

// `socket`: a connected stream of nobody else's, whether it blocks or not. Fails where the other end has not done its
// part by the deadline, and where what came is not what was sent.
Attempt<ExchangeFigures> exchange(int socket, int rank, int peer, const ExchangeSettings& settings,
                                  const Deadline& deadline);

}  // namespace elastic::health
