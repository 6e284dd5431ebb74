#pragma once

#include <cstdint>

namespace elastic::protocol {

// The number of a new agent, or the incarnation of a job that is started afresh, from 64 random bits. It is never 0,
// which stands for none.
constexpr std::uint64_t random_id(std::uint64_t random) { return random != 0 ? random : 1; }

}  // namespace elastic::protocol
