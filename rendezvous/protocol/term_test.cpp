#include "rendezvous/protocol/term.h"

#include <doctest/doctest.h>

#include <limits>

using namespace elastic::protocol;

TEST_CASE("a term is above all that it follows, also those of versions that only counted") {
  constexpr std::uint32_t kRandom = 0x5678'4f1a;
  for (const Term known : {Term{1}, Term{7}, term_after(1, 0xffff), Term{0xffff'0000}, Term{0xffff'fffe}}) {
    CHECK(term_after(known, kRandom) > known);
  }
  CHECK(text_of_term(1) == "1");
  CHECK(text_of_term(term_after(1, kRandom)) == "2.4f1a");
  CHECK(text_of_term(term_after(term_after(1, 0xffff), kRandom)) == "3.4f1a");
  constexpr Term kHighest = std::numeric_limits<Term>::max();
  CHECK(term_after(kHighest, kRandom) == kHighest);
}

TEST_CASE("two coordinators that follow the same one have different terms") {
  CHECK(term_after(1, 2) != term_after(1, 3));
  CHECK(term_after(term_after(1, 9), 2) != term_after(term_after(1, 9), 3));
}
