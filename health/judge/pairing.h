#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Which nodes of a round test the way between them, in two stages and, where somebody did badly in both, a third.
namespace elastic::health {

// Nodes that test each other, by node rank: two of them; of more each pair in turn; one alone has nobody.
using Group = std::vector<int>;

// Two nodes of a group, the lower rank first, and how their test went.
struct PairTest {
  int low = 0;
  int high = 0;
  bool passed = false;
  double time_ms = 0;    // of one exchange; only if it passed
  bool crosses = false;  // between two racks, whose ways are slower by nature

  bool has(int node) const { return node == low || node == high; }
  int other(int node) const { return node == low ? high : low; }
  bool operator==(const PairTest&) const = default;
};

// The rack of each node, by rank, as any number; nodes of the same are near each other. None: all are.
using Racks = std::vector<int>;
// What names of racks stand for.
Racks racks_of(const std::vector<std::string>& names);
bool are_near(const Racks& racks, int one, int other);

// What is known of a node between two stages.
struct StageFacts {
  bool is_fit_by_itself = true;  // what it has tried without any other node
  std::optional<double> time_ms =
      {};  // by which it is matched: the least of its passed tests; none: it has passed none
};

// The least time of each node's passed tests, by rank: of those in its rack where it has passed one; none where it has
// passed none.
std::vector<std::optional<double>> best_times(std::size_t nodes, const std::vector<PairTest>& tests);

// The tests that a group makes, in this order.
std::vector<std::pair<int, int>> tests_of(const Group& group);

// The first stage of nodes 0 to nodes - 1: neighbours of a rack; a node that is left over joins its rack's last pair.
// Those that are alone in their racks are neighbours of each other; of an odd number one joins the last pair, or is
// alone.
std::vector<Group> neighbours(int nodes, const Racks& racks = {});

// The second stage. A suspect, who has passed no test, meets a node that has passed one, and another than before where
// there is one, of its rack where there is one: then it alone can be the cause if that fails, too. A good node meets
// two suspects where there are more of them than good nodes. The nodes that are left, good ones or suspects for whom no
// good one is there, meet fastest with slowest of another rack, if there are racks; of an odd number the middle one
// with the last pair. Within a group the one that is good, or faster, is first. Nodes that are unfit by themselves are
// in no group. `first` has the tests of the first stage, `facts` each node's by rank.
std::vector<Group> second_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& first,
                                const Racks& racks = {});

// The third stage, for those alone who have passed no test yet, or none within `usual_ms`: each meets a good and fast
// node, another than before, so that neither a bad link to the one nor a slow partner is taken for a bad node. Empty
// where there is no such node, or no good one.
std::vector<Group> third_stage(const std::vector<StageFacts>& facts, const std::vector<PairTest>& before,
                               double usual_ms, const Racks& racks = {});

// In a ring of so many members, at least 2, the turn (0, 1 or 2) in which place `from` meets the one behind it. The
// two turns of a place are not the same (of 2 members it is one meeting): if all meet their neighbours in the order of
// turns, none waits for one who waits for it, and all are done after the third.
int ring_turn(int from, int members);

}  // namespace elastic::health
