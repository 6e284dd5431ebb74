#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "health/probe/attempt.h"

// The blocks that nodes send each other in measurements, and how they are sent.
namespace elastic::health {

using Block = std::vector<std::uint64_t>;

// Fills a node's block. The words differ between ranks, between repetitions and within the block.
void fill_block(Block& block, int rank, int repetition);
// How many bytes differ from what fill_block() writes with these arguments.
std::size_t wrong_bytes(const Block& block, int rank, int repetition);

// Why a transfer failed: the deadline passed, or one of the two connections failed.
struct TransferFailure {
  enum class Where { kDeadline, kSending, kReceiving };
  Where where = Where::kDeadline;
  std::string why = {};  // a clause about the node at the other end; empty if the deadline passed
};

// Sends `out` to one stream and receives `in` from another one, which may be the same, until both are complete. Both
// happen at the same time, since two nodes that send first and receive then would wait for each other.
std::expected<void, TransferFailure> transfer(int to, std::span<const std::byte> out, int from, std::span<std::byte> in,
                                              const Deadline& deadline);

// The middle one of at least one measured time.
double middle_of(std::vector<double> times);

}  // namespace elastic::health
