#include "rendezvous/protocol/term.h"

#include <algorithm>
#include <limits>

#include "src/base/text.h"

namespace elastic::protocol {

namespace {
constexpr int kRandomBits = 16;
constexpr Term kRandomHalf = (Term{1} << kRandomBits) - 1;
constexpr Term kHighest = std::numeric_limits<Term>::max();
}  // namespace

Term term_after(Term known, std::uint32_t random) {
  const Term count = (known >> kRandomBits) + 1;
  if (count <= kRandomHalf) return count << kRandomBits | (random & kRandomHalf);
  return std::min(known, kHighest - 1) + 1;
}

std::string text_of_term(Term term) {
  const Term count = term >> kRandomBits;
  return count == 0 ? format("{}", term) : format("{}.{:04x}", count + 1, term & kRandomHalf);
}

}  // namespace elastic::protocol
