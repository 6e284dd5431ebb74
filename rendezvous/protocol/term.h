#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/protocol/messages.h"

// Which of a job's coordinators speaks: the first has term 1, a later one has a higher term. Of those that have taken
// over the upper half of the number counts them, and the lower half is random, so that two that take over at once, and
// do not know of each other, have different terms.
namespace elastic::protocol {

// Higher than `known`, with bits of `random`.
Term term_after(Term known, std::uint32_t random);

// For people: "1", then "2.4f1a" with the random half.
std::string text_of_term(Term term);

}  // namespace elastic::protocol
