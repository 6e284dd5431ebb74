#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/protocol/messages.h"

// Terms order the coordinators of a job: the first has term 1, and each later one a higher term. The upper half of a
// later term is a count, and the lower half is random, so that two coordinators that take over at the same time, and do
// not know of each other, have different terms.
namespace elastic::protocol {

// A term above `known`, whose lower half is from `random`.
Term term_after(Term known, std::uint32_t random);

// The term as people see it: "1", and later "2.4f1a" with the random half in hex.
std::string text_of_term(Term term);

}  // namespace elastic::protocol
