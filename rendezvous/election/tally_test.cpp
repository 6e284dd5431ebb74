#include "rendezvous/election/tally.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace elastic::election;

TEST_CASE("a quorum lasts until one supporter too few is left") {
  Tally tally({5, TieBreaker::nobody()});
  CHECK(tally.ends_ms() == Tally::kNever);
  tally.supports(0, Tally::kAlways);
  tally.supports(3, 500);
  CHECK(tally.ends_ms() == Tally::kNever);
  tally.supports(4, 300);
  CHECK(tally.ends_ms() == 300);
  tally.supports(1, 400);
  CHECK(tally.ends_ms() == 400);
  tally.supports(1, 350);  // what was promised stays promised
  CHECK(tally.ends_ms() == 400);
  tally.supports(4, 600);
  CHECK(tally.ends_ms() == 500);
  tally.supports(9, 900);  // of another round
  CHECK(tally.ends_ms() == 500);
}

TEST_CASE("half of a round is enough for as long as the tie-breaker is in it") {
  Tally tally({4, TieBreaker::node(2)});
  tally.supports(0, 900);
  tally.supports(1, 800);
  CHECK(tally.ends_ms() == Tally::kNever);
  tally.supports(2, 300);
  CHECK(tally.ends_ms() == 300);
  tally.supports(3, 700);
  CHECK(tally.ends_ms() == 700);  // of three without it
  Tally own({4, TieBreaker::coordinator()});
  own.supports(0, 900);
  own.supports(1, 800);
  CHECK(own.ends_ms() == 800);
}

TEST_CASE("a member that died as a supporter supports the coordinator for ever, and has heard of every round") {
  Tally tally({4, TieBreaker::nobody()});
  tally.supports(0, 900);
  tally.supports(1, 800);
  tally.supports(2, 700);
  CHECK(tally.ends_ms() == 700);
  tally.died(2);
  CHECK(tally.ends_ms() == 800);
  tally.hears(0);
  CHECK_FALSE(tally.has_heard({}));
  tally.hears(0);
  CHECK_FALSE(tally.has_heard({}));
  tally.hears(1);
  CHECK(tally.has_heard({}));
  tally.forget_hearers();
  tally.hears(1);
  CHECK_FALSE(tally.has_heard({}));
  tally.hears(3);
  CHECK(tally.has_heard({}));
}

TEST_CASE("who counts no more supports nobody, hears nothing and breaks no tie") {
  Electorate certified(4, TieBreaker::node(0));
  certified.certify(0);
  Tally tally(certified);
  tally.supports(0, 900);
  tally.supports(1, 800);
  CHECK(tally.ends_ms() == Tally::kNever);
  tally.supports(2, 700);
  CHECK(tally.ends_ms() == 700);
  tally.hears(0);
  tally.hears(1);
  CHECK_FALSE(tally.has_heard({}));
  tally.died(0);
  CHECK(tally.ends_ms() == 700);
}

TEST_CASE("the end is that of a count by hand, whoever supports until when") {
  std::uint64_t seed = 1;
  const auto below = [&](int bound) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((seed >> 33) % static_cast<std::uint64_t>(bound));
  };
  for (int run = 0; run < 300; ++run) {
    const int count = 1 + below(9);
    Electorate electorate(count, below(3) == 0   ? TieBreaker::coordinator()
                                 : below(2) == 0 ? TieBreaker::nobody()
                                                 : TieBreaker::node(below(count)));
    if (below(3) == 0 && !electorate.tie_breaker().is_coordinator()) electorate.certify(below(count));
    Tally tally(electorate);
    std::vector<std::int64_t> until_ms(static_cast<std::size_t>(count), -1);
    for (int step = 0; step < 20; ++step) {
      const int rank = below(count);
      std::int64_t& present_ms = until_ms[static_cast<std::size_t>(rank)];
      present_ms = std::max<std::int64_t>(present_ms, below(50));
      tally.supports(rank, present_ms);
      for (std::int64_t now_ms = 0; now_ms < 51; ++now_ms) {
        std::vector<int> supporters;
        for (int each = 0; each < count; ++each) {
          if (until_ms[static_cast<std::size_t>(each)] > now_ms) supporters.push_back(each);
        }
        REQUIRE(electorate.is_quorum(supporters) == (tally.ends_ms() > now_ms));
      }
    }
  }
}
