#include "rendezvous/election/quorum_tracker.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace elastic::election;

TEST_CASE("a quorum lasts until one vote too few is left") {
  QuorumTracker quorum_tracker({5, TieBreaker::nobody()});
  CHECK(quorum_tracker.ends_ms() == QuorumTracker::kNever);
  quorum_tracker.votes_until(0, QuorumTracker::kAlways);
  quorum_tracker.votes_until(3, 500);
  CHECK(quorum_tracker.ends_ms() == QuorumTracker::kNever);
  quorum_tracker.votes_until(4, 300);
  CHECK(quorum_tracker.ends_ms() == 300);
  quorum_tracker.votes_until(1, 400);
  CHECK(quorum_tracker.ends_ms() == 400);
  quorum_tracker.votes_until(1, 350);  // a vote is never shortened
  CHECK(quorum_tracker.ends_ms() == 400);
  quorum_tracker.votes_until(4, 600);
  CHECK(quorum_tracker.ends_ms() == 500);
  quorum_tracker.votes_until(9, 900);  // rank 9 is not in the round
  CHECK(quorum_tracker.ends_ms() == 500);
}

TEST_CASE("half of a round is enough for as long as the tie-breaker is in it") {
  QuorumTracker quorum_tracker({4, TieBreaker::node(2)});
  quorum_tracker.votes_until(0, 900);
  quorum_tracker.votes_until(1, 800);
  CHECK(quorum_tracker.ends_ms() == QuorumTracker::kNever);
  quorum_tracker.votes_until(2, 300);
  CHECK(quorum_tracker.ends_ms() == 300);
  quorum_tracker.votes_until(3, 700);
  CHECK(quorum_tracker.ends_ms() == 700);  // three are a majority without the tie-breaker
  QuorumTracker own({4, TieBreaker::coordinator()});
  own.votes_until(0, 900);
  own.votes_until(1, 800);
  CHECK(own.ends_ms() == 800);
}

TEST_CASE("the vote of a member that died while it held counts for ever, and the member has heard of every round") {
  QuorumTracker quorum_tracker({4, TieBreaker::nobody()});
  quorum_tracker.votes_until(0, 900);
  quorum_tracker.votes_until(1, 800);
  quorum_tracker.votes_until(2, 700);
  CHECK(quorum_tracker.ends_ms() == 700);
  quorum_tracker.died(2);
  CHECK(quorum_tracker.ends_ms() == 800);
  quorum_tracker.hears(0);
  CHECK_FALSE(quorum_tracker.has_heard({}));
  quorum_tracker.hears(0);
  CHECK_FALSE(quorum_tracker.has_heard({}));
  quorum_tracker.hears(1);
  CHECK(quorum_tracker.has_heard({}));
  quorum_tracker.forget_hearers();
  quorum_tracker.hears(1);
  CHECK_FALSE(quorum_tracker.has_heard({}));
  quorum_tracker.hears(3);
  CHECK(quorum_tracker.has_heard({}));
}

TEST_CASE("a member that counts no more gives no vote, hears of no round and breaks no tie") {
  VoterSet certified(4, TieBreaker::node(0));
  certified.strike_off(0);
  QuorumTracker quorum_tracker(certified);
  quorum_tracker.votes_until(0, 900);
  quorum_tracker.votes_until(1, 800);
  CHECK(quorum_tracker.ends_ms() == QuorumTracker::kNever);
  quorum_tracker.votes_until(2, 700);
  CHECK(quorum_tracker.ends_ms() == 700);
  quorum_tracker.hears(0);
  quorum_tracker.hears(1);
  CHECK_FALSE(quorum_tracker.has_heard({}));
  quorum_tracker.died(0);
  CHECK(quorum_tracker.ends_ms() == 700);
}

TEST_CASE("the end of a quorum is that of a count by hand, whoever votes until when") {
  std::uint64_t seed = 1;
  const auto below = [&](int bound) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((seed >> 33) % static_cast<std::uint64_t>(bound));
  };
  for (int run = 0; run < 300; ++run) {
    const int count = 1 + below(9);
    VoterSet voter_set(count, below(3) == 0   ? TieBreaker::coordinator()
                              : below(2) == 0 ? TieBreaker::nobody()
                                              : TieBreaker::node(below(count)));
    if (below(3) == 0 && !voter_set.tie_breaker().is_coordinator()) voter_set.strike_off(below(count));
    QuorumTracker quorum_tracker(voter_set);
    std::vector<std::int64_t> until_ms(static_cast<std::size_t>(count), -1);
    for (int step = 0; step < 20; ++step) {
      const int rank = below(count);
      std::int64_t& present_ms = until_ms[static_cast<std::size_t>(rank)];
      present_ms = std::max<std::int64_t>(present_ms, below(50));
      quorum_tracker.votes_until(rank, present_ms);
      for (std::int64_t now_ms = 0; now_ms < 51; ++now_ms) {
        std::vector<int> supporters;
        for (int each = 0; each < count; ++each) {
          if (until_ms[static_cast<std::size_t>(each)] > now_ms) supporters.push_back(each);
        }
        REQUIRE(voter_set.is_quorum(supporters) == (quorum_tracker.ends_ms() > now_ms));
      }
    }
  }
}
