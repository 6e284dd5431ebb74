#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Which nodes of a round test the way between them: in two stages and, for nodes that did badly in both, a third one.
namespace elastic::health {

// Nodes that test each other, by node rank. In a group of more than two each pair makes its test in turn; a node that
// is alone in its group makes none.
using Group = std::vector<int>;

// Two nodes of a group, the lower rank first, and how their test went.
struct PairTest {
  int low = 0;
  int high = 0;
  bool passed = false;
  double time_ms = 0;    // the time of one exchange; only if the test passed
  bool crosses = false;  // the nodes are in different racks, so that the way between them may be slower

  bool has(int node) const { return node == low || node == high; }
  int other(int node) const { return node == low ? high : low; }
  bool operator==(const PairTest&) const = default;
};

// The rack of each node, by node rank; the numbers have no meaning but that equal ones are the same rack. Empty: all
// nodes are in one rack.
using Racks = std::vector<int>;
// One number for each name of a rack.
Racks racks_of(const std::vector<std::string>& names);
bool are_near(const Racks& racks, int one, int other);

// What is known of a node before a stage.
struct StageFacts {
  bool is_fit_by_itself = true;        // by its tests without another node
  std::optional<double> time_ms = {};  // by best_times(): nodes are matched by it; none: the node has passed no test
};

// The least time of each node's passed tests, by node rank. Where a node has passed tests inside its rack only those
// count; none where it has passed no test.
std::vector<std::optional<double>> best_times(std::size_t nodes, const std::vector<PairTest>& tests);

// The tests that a group makes, in their order.
std::vector<std::pair<int, int>> tests_of(const Group& group);

// The groups of the first stage, for the nodes 0 to nodes - 1: neighbours inside a rack are pairs. A node that is left
// over joins the last pair of its rack. Nodes that are alone in their racks become pairs with each other; the one that
// is left over joins the last pair, or is alone.
std::vector<Group> neighbours(int nodes, const Racks& racks = {});

// The groups of the second stage. A suspect, a node that has passed no test, meets a good node, one that has passed a
// test: if that test fails, too, the suspect alone can be the cause. The good node is one that the suspect has not met
// where there is one, and of the same rack where there is one. Where there are more suspects than good nodes, a good
// node meets two. All others, good nodes and suspects for which no good node is left, meet the fastest with the
// slowest, of another rack where there is one; of an odd number the middle one joins the last pair. Within a group the
// good or faster node is first. Nodes that are unhealthy by themselves are in no group. `facts`: by node rank; `first`:
// the tests of the first stage.
std::vector<Group> second_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& first,
                                const Racks& racks = {});

// The groups of the third stage. Only nodes that have passed no test yet, or none within `usual_ms`, take part: each
// meets a good and fast node that it has not met before, so that neither a bad link nor a slow partner is taken for a
// bad node. Empty where there are no such nodes, or no good ones.
std::vector<Group> third_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& before,
                               double usual_ms, const Racks& racks = {});

// The turn (0, 1 or 2) in which the member at place `from` of a ring connects to the next one. `members`: at least 2.
// The two turns of a member differ, so if all members connect to their neighbours in the order of turns, no two wait
// for each other, and all are connected after turn 2. A ring of 2 has one connection.
int ring_turn(int from, int members);

}  // namespace elastic::health
