#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "health/probe/attempt.h"

// What measurements of the way between nodes send each other, and how.
namespace elastic::health {

using Block = std::vector<std::uint64_t>;

// What stands in the block of a node, another value for each rank, repetition and place.
void fill_block(Block& block, int rank, int repetition);
std::size_t wrong_bytes(const Block& block, int rank, int repetition);

// Why bytes did not get through: the deadline has passed, or one of the two connections failed.
struct TransferFailure {
  enum class Where { kDeadline, kSending, kReceiving };
  Where where = Where::kDeadline;
  std::string why = {};  // as a clause about the node at the other end; empty for the deadline
};

// Sends `out` to one stream and receives `in` from another, which may be the same, both at the same time until all of
// both is through: who sends first and listens then waits for one who does the same.
std::expected<void, TransferFailure> transfer(int to, std::span<const std::byte> out, int from, std::span<std::byte> in,
                                              const Deadline& deadline);

// Of times that were measured, at least one, the middle one.
double middle_of(std::vector<double> times);

}  // namespace elastic::health
