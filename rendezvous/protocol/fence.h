#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/protocol/messages.h"

// The fence of a round as workers get it (ELASTIC_RUN_FENCE). It tells a storage which of two worlds of a job is the
// later one.
namespace elastic::protocol {

// The latest birth that a fence can have, as Unix time in milliseconds: it is in the year 2286.
inline constexpr std::int64_t kLatestBirthMs = 9'999'999'999'999;

// "1795447531123-0000000001-0000000002": birth, term and round, each with a fixed number of decimal digits, so that of
// two fences the one that is greater as text is the later one. A birth below 0 or above kLatestBirthMs becomes that
// bound.
std::string text_of_fence(const Fence& fence, RoundNumber round);

}  // namespace elastic::protocol
