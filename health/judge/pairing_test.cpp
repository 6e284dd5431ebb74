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

// The tests of these groups, where every test of a faulty node fails.
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

TEST_CASE(
    "then the fastest meets the slowest; equal ones keep their order, of an odd number the middle one joins the last") {
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
  // In DLRover each node reports for itself whether it failed, and node 2 did not.
  CHECK(second_stage({{.time_ms = 0}, {.time_ms = 0}, {.time_ms = 0}, {}}, first) == Groups{{0, 3}, {1, 2}});
  // Here an exchange fails for both nodes, so each of them meets a node that is known to be good.
  CHECK(second_stage({{.time_ms = 0}, {.time_ms = 0}, {}, {}}, first) == Groups{{0, 2}, {1, 3}});
  // N5: nodes 4 and 5 have failed together, and do not meet again.
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

TEST_CASE("a node that is unhealthy by itself meets nobody; without any good node suspects meet each other anew") {
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

// DLRover's cases N7 to N12 have groups of more than two nodes, one for each position in a rack: here nodes meet in
// pairs.
TEST_CASE("in racks neighbours meet inside, then nodes of different racks; DLRover's N7, N10 and N12") {
  const Racks two = {0, 0, 0, 0, 1, 1, 1, 1};
  // N7: the first stage is the same. Then DLRover pairs nodes by position, {0,4} to {3,7}; here the fastest meets the
  // slowest.
  CHECK(neighbours(8, two) == Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(second_stage(passed({1, 2, 3, 4, 5, 6, 7, 8}), {}, two) == Groups{{0, 7}, {1, 6}, {2, 5}, {3, 4}});
  CHECK(second_stage(passed({1, 8, 2, 7, 3, 6, 4, 5}), {}, two) == Groups{{0, 5}, {2, 7}, {4, 1}, {6, 3}});
  // N10: DLRover has one group of four for each position.
  CHECK(second_stage(passed({1, 1, 1, 1, 1, 1, 1, 1}), {}, {0, 0, 1, 1, 2, 2, 3, 3}) ==
        Groups{{0, 7}, {1, 6}, {2, 5}, {3, 4}});
  // N12: no racks.
  CHECK(neighbours(4) == Groups{{0, 1}, {2, 3}});
  CHECK(neighbours(4, {0, 0, 0, 0}) == neighbours(4));
}

TEST_CASE("a suspect meets a good node of its own rack; DLRover's N8, where the two suspects meet again, and N11") {
  const Racks two = {0, 0, 0, 0, 1, 1, 1, 1};
  const std::vector<PairTest> first = tests_with(neighbours(8, two), {1});
  std::vector<StageFacts> facts = passed({0, 0, 1, 1, 1, 1, 1, 1});
  facts[0].time_ms.reset();
  facts[1].time_ms.reset();
  CHECK(second_stage(facts, first, two) == Groups{{2, 0}, {3, 1}, {4, 7}, {5, 6}});
  // N11, racks of three and two: node 3 has failed with 4, and no third node is in their rack.
  // DLRover's code gives the same two groups.
  const Racks uneven = {0, 0, 0, 1, 1};
  CHECK(neighbours(5, uneven) == Groups{{0, 1, 2}, {3, 4}});
  facts = passed({1, 2, 3, 0, 0});
  facts[3].time_ms.reset();
  facts[4].time_ms.reset();
  CHECK(second_stage(facts, tests_with(neighbours(5, uneven), {3}), uneven) == Groups{{0, 3}, {1, 4, 2}});
}

TEST_CASE("who is alone in its rack meets others that are, or joins a pair") {
  CHECK(neighbours(4, {0, 1, 2, 3}) == Groups{{0, 1}, {2, 3}});
  CHECK(neighbours(5, {0, 0, 1, 1, 2}) == Groups{{0, 1}, {2, 3, 4}});
  CHECK(neighbours(3, {0, 1, 2}) == Groups{{0, 1, 2}});
  CHECK(neighbours(1, {7}) == Groups{{0}});
  CHECK(racks_of({"b", "a", "", "b"}) == Racks{0, 1, 2, 0});
}

TEST_CASE("a node's time is that of its rack, where it has met somebody there") {
  const std::vector<PairTest> tests = {{.low = 0, .high = 1, .passed = true, .time_ms = 5},
                                       {.low = 1, .high = 2, .passed = true, .time_ms = 2, .crosses = true}};
  CHECK(best_times(3, tests) == std::vector<std::optional<double>>{5, 5, 2});
}

TEST_CASE("in a ring no place meets both neighbours in the same turn, and both ends of a meeting have the same") {
  CHECK(ring_turn(0, 2) == ring_turn(1, 2));
  for (int members = 3; members < 40; ++members) {
    for (int place = 0; place < members; ++place) {
      CAPTURE(members);
      CAPTURE(place);
      const int before = ring_turn((place + members - 1) % members, members), after = ring_turn(place, members);
      CHECK(before != after);
      CHECK(after >= 0);
      CHECK(after <= 2);
    }
  }
}
