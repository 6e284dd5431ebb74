#include "health/hang/rank_runs.h"

#include <doctest/doctest.h>

#include <climits>

namespace elastic::hang {

TEST_CASE("ranks that follow each other are one run, in whatever order they come") {
  const RankRuns ranks = RankRuns::of({7, 2, 0, 1, 6, 2});
  CHECK(ranks.text() == "0-2,6-7");
  CHECK(ranks.size() == 5);
  CHECK(ranks.front() == 0);
  RankRuns added;
  for (const int rank : {7, 2, 0, 1, 6, 2}) added.add(rank);
  CHECK(added == ranks);
}

TEST_CASE("a rank is found in the run that has it, and in none between two runs") {
  const RankRuns ranks = RankRuns::of({0, 1, 2, 6, 7});
  for (const int rank : {0, 1, 2, 6, 7}) CHECK(ranks.contains(rank));
  for (const int rank : {-1, 3, 5, 8}) CHECK(!ranks.contains(rank));
  CHECK(!RankRuns().contains(0));
}

TEST_CASE("whether all of others are among some ranks, or one of them, is found by runs") {
  const RankRuns ranks = RankRuns::of({0, 1, 2, 6, 7});
  CHECK(ranks.includes(RankRuns::of({1, 2, 7})));
  CHECK(ranks.includes({}));
  CHECK(!ranks.includes(RankRuns::of({2, 3})));
  CHECK(!ranks.includes(RankRuns::of({5})));
  CHECK(ranks.meets(RankRuns::of({3, 4, 5, 6})));
  CHECK(ranks.meets(RankRuns::all(100)));
  CHECK(!ranks.meets(RankRuns::of({3, 4, 5, 8})));
  CHECK(!ranks.meets({}));
}

TEST_CASE("ten thousand ranks but one are two runs") {
  RankRuns ranks;
  for (int rank = 0; rank < 10'000; ++rank) {
    if (rank != 5'000) ranks.add(rank);
  }
  CHECK(ranks.runs.size() == 2);
  CHECK(ranks.text() == "0-4999,5001-9999");
  CHECK(united(ranks, RankRuns::of({5'000})) == RankRuns::all(10'000));
  CHECK(RankRuns::all(0).empty());
}

TEST_CASE("a text that is too long is cut between two runs") {
  CHECK(RankRuns::of({1, 3, 5, 70}).text(6) == "1,3,5...");
  CHECK(RankRuns::of({1, 3, 5}).text(5) == "1,3,5");
}

TEST_CASE("runs of another node lose what is no rank of this world") {
  const RankRuns sent{.runs = {{5, 90}, {-4, 1}, {3, 2}, {4, 4}, {INT_MIN, INT_MIN}, {INT_MAX, INT_MAX}}};
  CHECK(normalised(sent, 8).text() == "0-1,4-7");
  CHECK(normalised({.runs = {{0, INT_MAX}}}, 0).empty());
  std::vector<int> visited;
  normalised(sent, 6).for_each([&](int rank) { visited.push_back(rank); });
  CHECK(visited == std::vector{0, 1, 4, 5});
}

}  // namespace elastic::hang
