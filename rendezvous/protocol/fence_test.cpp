#include "rendezvous/protocol/fence.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "rendezvous/protocol/term.h"

using namespace elastic::protocol;

TEST_CASE("a fence is birth, term and round in fixed widths") {
  CHECK(text_of_fence({1'795'447'531'123, 1}, 2) == "1795447531123-0000000001-0000000002");
  CHECK(text_of_fence({7, term_after(1, 0x4f1a)}, 0) == "0000000000007-0000085786-0000000000");
}

TEST_CASE("as text a fence grows with the birth, then with the term, then with the round") {
  constexpr Term kHighest = std::numeric_limits<Term>::max();
  constexpr RoundNumber kLast = std::numeric_limits<RoundNumber>::max();
  const std::vector<std::string> growing = {text_of_fence({0, 1}, 9),        text_of_fence({0, 1}, 10),
                                            text_of_fence({0, 9}, 0),        text_of_fence({0, 10}, kLast),
                                            text_of_fence({0, kHighest}, 0), text_of_fence({9, 1}, 0),
                                            text_of_fence({10, 1}, 0),       text_of_fence({kLatestBirthMs, 1}, 0)};
  for (std::size_t i = 1; i < growing.size(); ++i) {
    CHECK(growing[i - 1] < growing[i]);
    CHECK(growing[i - 1].size() == growing[i].size());
  }
}

TEST_CASE("a birth that no clock shows does not change a fence's width") {
  CHECK(text_of_fence({-1, 1}, 0) == text_of_fence({0, 1}, 0));
  CHECK(text_of_fence({std::numeric_limits<std::int64_t>::max(), 1}, 0) == text_of_fence({kLatestBirthMs, 1}, 0));
}
