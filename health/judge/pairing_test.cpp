#include "health/judge/pairing.h"

#include <doctest/doctest.h>

#include <set>

using namespace elastic::health;

namespace {

using Groups = std::vector<Group>;

// Nodes that have all passed, with these times.
std::vector<StageFacts> passed(const std::vector<double>& times_ms) {
  std::vector<StageFacts> facts;
  for (const double ms : times_ms) facts.push_back({.time_ms = ms});
  return facts;
}

// What the groups' tests give where these nodes let every one of theirs fail.
std::vector<PairTest> tests_with(const Groups& groups, const std::set<int>& bad) {
  std::vector<PairTest> tests;
  for (const Group& group : groups) {
    for (const auto& [low, high] : tests_of(group)) {
      tests.push_back({.low = low, .high = high, .passed = !bad.contains(low) && !bad.contains(high), .time_ms = 1});
    }
  }
  return tests;
}

}  // namespace

TEST_CASE("neighbours meet first; who is left over joins the last pair, or is alone") {
  CHECK(neighbours(0).empty());
  CHECK(neighbours(1) == Groups{{0}});
  CHECK(neighbours(2) == Groups{{0, 1}});
  CHECK(neighbours(3) == Groups{{0, 1, 2}});
  CHECK(neighbours(5) == Groups{{0, 1}, {2, 3, 4}});
  CHECK(neighbours(6) == Groups{{0, 1}, {2, 3}, {4, 5}});
}

TEST_CASE("a pair has one test, and of three each pair has one") {
  CHECK(tests_of({4}).empty());
  CHECK(tests_of({5, 4}) == std::vector<std::pair<int, int>>{{4, 5}});
  CHECK(tests_of({4, 2, 3}) == std::vector<std::pair<int, int>>{{2, 4}, {3, 4}, {2, 3}});
}

TEST_CASE("then the fastest meets the slowest; equal ones keep their order, of an odd number the middle one joins the last") {
  // DLRover's cases N3, N4 and that of its documents.
  CHECK(second_stage(passed({5, 5, 5, 5, 15, 15}), {}) == Groups{{0, 5}, {1, 4}, {2, 3}});
  CHECK(second_stage(passed({15, 15, 5, 5, 5}), {}) == Groups{{2, 1}, {3, 0, 4}});
  CHECK(second_stage(passed({206.872, 151.752, 20.307, 20.265}), {}) == Groups{{3, 0}, {2, 1}});
  CHECK(second_stage(passed({1, 2, 3}), {}) == Groups{{0, 2, 1}});
  CHECK(second_stage(passed({1}), {}) == Groups{{0}});
  CHECK(second_stage({}, {}).empty());
}

TEST_CASE("a suspect meets a good node that it has not met; DLRover's N1 comes out the same") {
  const std::vector<PairTest> first = {{0, 1, true, 0}, {2, 3, false, 0}};
  // There each node says for itself whether it failed: node 2 did not.
  CHECK(second_stage({{.time_ms = 0}, {.time_ms = 0}, {.time_ms = 0}, {}}, first) == Groups{{0, 3}, {1, 2}});
  // Here an exchange fails for both: each of them meets a node that is known to be good.
  CHECK(second_stage({{.time_ms = 0}, {.time_ms = 0}, {}, {}}, first) == Groups{{0, 2}, {1, 3}});
  // N5: 4 and 5 have failed together, and do not meet again.
  const auto n5 = second_stage({{.time_ms = 3}, {.time_ms = 2}, {.time_ms = 4}, {.time_ms = 1}, {}, {}},
                               {{0, 1, true, 2}, {2, 3, true, 1}, {4, 5, false, 0}});
  CHECK(n5 == Groups{{3, 4}, {1, 5}, {0, 2}});
}

TEST_CASE("of three nodes the suspect of a triple meets one that it has met, there is no other") {
  const std::vector<PairTest> first = tests_with({{0, 1, 2}}, {1});
  CHECK(second_stage({{.time_ms = 1}, {}, {.time_ms = 1}}, first) == Groups{{0, 1, 2}});
}

TEST_CASE("more suspects than good nodes: a good one meets two, and the rest each other") {
  const std::vector<PairTest> first = tests_with(neighbours(8), {3, 5, 7});
  std::vector<StageFacts> facts(8);
  facts[0].time_ms = 2;
  facts[1].time_ms = 1;
  CHECK(second_stage(facts, first) == Groups{{1, 2, 4}, {0, 3, 5}, {6, 7}});
}

TEST_CASE("who is unfit by itself meets nobody; without any good node suspects meet each other anew") {
  std::vector<StageFacts> facts = passed({1, 2, 3});
  facts[1].is_fit_by_itself = false;
  CHECK(second_stage(facts, {}) == Groups{{0, 2}});
  CHECK(second_stage(std::vector<StageFacts>(4), tests_with(neighbours(4), {0, 2})) == Groups{{0, 3}, {1, 2}});
}

TEST_CASE("every node that is fit by itself is in exactly one group of two to four, whoever failed") {
  for (int nodes = 2; nodes < 40; ++nodes) {
    for (int bad = 0; bad <= nodes; ++bad) {
      std::set<int> failing;
      for (int i = 0; i < bad; ++i) failing.insert(i * 7 % nodes);
      const std::vector<PairTest> first = tests_with(neighbours(nodes), failing);
      std::vector<StageFacts> facts(static_cast<std::size_t>(nodes));
      for (const PairTest& test : first) {
        if (!test.passed) continue;
        for (const int node : {test.low, test.high}) facts[static_cast<std::size_t>(node)].time_ms = 1 + node * 13 % 5;
      }
      std::multiset<int> seen;
      for (const Group& group : second_stage(facts, first)) {
        CHECK(group.size() >= 2);
        CHECK(group.size() <= 4);
        seen.insert(group.begin(), group.end());
      }
      CHECK(seen.size() == static_cast<std::size_t>(nodes));
      CHECK(std::set<int>(seen.begin(), seen.end()).size() == seen.size());
    }
  }
}

TEST_CASE("who did badly in both stages meets a good and fast third node; nobody else is troubled") {
  std::vector<StageFacts> facts = passed({1, 1, 1, 1});
  CHECK(third_stage(facts, {}, 2).empty());
  facts[3].time_ms.reset();
  CHECK(third_stage(facts, {{2, 3, false, 0}, {0, 3, false, 0}}, 2) == Groups{{1, 3}});
  facts[3].time_ms = 7;
  CHECK(third_stage(facts, {{2, 3, true, 7}, {1, 3, true, 8}}, 2) == Groups{{0, 3}});
  CHECK(third_stage(passed({7, 7}), {}, 2).empty());
  CHECK(third_stage(std::vector<StageFacts>(4), {}, 2).empty());
}
