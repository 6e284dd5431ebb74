#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/judge/pairing.h"

// What the stages of a check say of the nodes and of the ways between them.
namespace elastic::health {

// What one node has measured of itself.
struct NodeFigures {
  bool is_fit_by_itself = true;
  std::string why_not = {};               // as a clause, if it is not
  std::optional<double> compute_ms = {};  // the least time of one matrix product
};

// How the check judges; all times in milliseconds.
struct JudgeSettings {
  double slow_factor = 2;       // slower than so many times the median
  double compute_floor_ms = 1;  // and by at least this, so that noise on microseconds is no straggler
  double exchange_floor_ms = 1;
  std::string_view exchange = "exchange";  // what is done in a test of two, for people
};

enum class Fitness {
  kFit,
  kFaulty,        // of nodes that are all fit but it no test could have failed
  kUndetermined,  // all its tests failed, and none was with a node that is known to be good
};

struct NodeVerdict {
  Fitness fitness = Fitness::kFit;
  bool is_slow_in_compute = false;
  bool is_slow_in_exchange = false;
  std::optional<double> exchange_ms = {};  // the least time of its passed tests
  std::string why = {};                    // as a clause; empty for one that is fit and not slow

  bool is_straggler() const { return is_slow_in_compute || is_slow_in_exchange; }
};

struct Judgement {
  std::vector<NodeVerdict> nodes;  // by rank
  // Each link once, by its first such test.
  std::vector<PairTest> bad_links;  // failed, though both nodes are good
  std::vector<PairTest>
      slow_links;  // slow, though both nodes are fast with others, or nobody knows which of them it is
};

// `tests`: of all stages, in order. Where at least half of the first stage's pairs have passed and no good node has met
// a bad link in two stages, kFaulty are the faulty nodes, all of them and no others.
Judgement judge(const std::vector<NodeFigures>& nodes, const std::vector<PairTest>& tests,
                const JudgeSettings& settings = {});

// The longest time of an exchange that is none of a straggler's, by best_times(); infinite where none has passed.
double usual_exchange_ms(const std::vector<std::optional<double>>& best_ms, const JudgeSettings& settings = {});

// The middle value; of an even number the mean of the two. Of none: nothing.
std::optional<double> median(std::vector<double> values);

}  // namespace elastic::health
