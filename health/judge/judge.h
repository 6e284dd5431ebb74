#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/judge/pairing.h"

// Which nodes are faulty or slow, and which links are bad, by the results of a check.
namespace elastic::health {

// What one node has found in its tests without another node.
struct NodeFigures {
  bool is_fit_by_itself = true;
  std::string why_not = {};               // why it is not fit, as a clause
  std::optional<double> compute_ms = {};  // the least time of one matrix product
};

// When a time is slow.
struct JudgeSettings {
  double slow_factor = 2;       // a slow time is more than so many times the median
  double compute_floor_ms = 1;  // and by more than this above it, so that noise of microseconds makes no straggler
  double exchange_floor_ms = 1;
  std::string_view exchange = "exchange";  // what messages call the test of two nodes
};

enum class Fitness {
  kFit,
  kFaulty,        // it is unhealthy by itself, or all its tests failed and one was with a node that is known to be good
  kUndetermined,  // all its tests failed, none of them with a node that is known to be good
};

struct NodeVerdict {
  Fitness fitness = Fitness::kFit;
  bool is_slow_in_compute = false;
  bool is_slow_in_exchange = false;
  std::optional<double> exchange_ms = {};  // the least time of its passed tests
  std::string why = {};                    // a clause; empty for a node that is fit and not slow

  bool is_straggler() const { return is_slow_in_compute || is_slow_in_exchange; }
};

struct Judgement {
  std::vector<NodeVerdict> nodes;  // by node rank
  // Each link is listed once, by its first such test.
  std::vector<PairTest> bad_links;  // failed, though both nodes are good
  std::vector<PairTest>
      slow_links;  // slow, though both nodes are fast with others, or it is not known which of them is slow
};

// `tests`: those of all stages, in order. If at least half of the first stage's pairs passed and no good node met a bad
// link in two stages, exactly the faulty nodes are judged kFaulty.
Judgement judge(const std::vector<NodeFigures>& nodes, const std::vector<PairTest>& tests,
                const JudgeSettings& settings = {});

// The longest time that is not slow, by the nodes' best_times(); infinite where no test has passed.
double usual_exchange_ms(const std::vector<std::optional<double>>& best_ms, const JudgeSettings& settings = {});

// The middle value; of an even number of values, the mean of the middle two. Nothing where there is no value.
std::optional<double> median(std::vector<double> values);

// Whether failed GPU tests show that nodes are faulty. A test that fails in the same way on every node does not: the
// cause may be the test itself, or something that all nodes have in common (an image, a driver, a setting of NCCL).
// Then no node is left out because of it, and the tests over TCP decide.

// How far a node came in its own GPU test.
struct GpuStanding {
  bool says_nothing = false;  // its test is not compared with the others': it has other faults, or tested no GPU
  std::optional<int> failed_in =
      {};  // the number of the first step that failed; none: no step failed, or no GPU was tested
};

// The step in which the GPU test failed on every node that has tested GPUs and has no other fault, if these are at
// least two nodes; else none.
std::optional<int> step_that_failed_everywhere(const std::vector<GpuStanding>& nodes);

// The result of an all-gather over NCCL between two nodes.
enum class Gathering {
  kNone,  // there was none: a node has no GPUs or another NCCL, or the exchange over TCP had failed already
  kPassed,
  kFailed,  // it failed without showing that a GPU is at fault
  kDefect,  // bytes arrived wrong, or there was a hardware error
};

// Whether there were all-gathers in the stages so far, and all of them are kFailed.
bool no_gathering_worked(const std::vector<Gathering>& tests);

}  // namespace elastic::health
