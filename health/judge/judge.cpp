#include "health/judge/judge.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "src/base/text.h"

namespace elastic::health {
namespace {

std::size_t at(int node) { return static_cast<std::size_t>(node); }

// The nodes with which the tests of a node, all of them failed, were made: "node 1", "nodes 1 and 4".
std::string names_of_others(int node, const std::vector<PairTest>& tests) {
  std::vector<std::string> names;
  for (const PairTest& test : tests) {
    if (!test.has(node)) continue;
    const std::string name = format("{}", test.other(node));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  if (names.size() < 2) return "node " + join(names, "");
  const std::string last = std::exchange(names.back(), {});
  names.pop_back();
  return format("nodes {} and {}", join(names, ", "), last);
}

std::vector<double> known(const std::vector<std::optional<double>>& values) {
  std::vector<double> out;
  for (const std::optional<double>& value : values) {
    if (value) out.push_back(*value);
  }
  return out;
}

// What values are compared with: the median; of two values the smaller one, since neither can be above twice their
// mean.
std::optional<double> reference(std::vector<double> values) {
  if (values.size() == 2) return std::min(values[0], values[1]);
  return median(std::move(values));
}

// A time above this is slow.
double limit(const std::optional<double>& usual, double factor, double floor_ms) {
  return usual ? std::max(factor * *usual, *usual + floor_ms) : std::numeric_limits<double>::infinity();
}

bool has_link(const std::vector<PairTest>& links, const PairTest& test) {
  return std::ranges::any_of(links,
                             [&](const PairTest& link) { return link.low == test.low && link.high == test.high; });
}

void add_why(NodeVerdict& verdict, const std::string& why) { verdict.why += (verdict.why.empty() ? "" : "; ") + why; }

void judge_fitness(const std::vector<NodeFigures>& nodes, const std::vector<PairTest>& tests, Judgement& out) {
  const auto is_good = [&](int node) { return nodes[at(node)].is_fit_by_itself && out.nodes[at(node)].exchange_ms; };
  std::vector<std::vector<PairTest>> tests_of_node(nodes.size());
  for (const PairTest& test : tests) {
    for (const int node : {test.low, test.high}) tests_of_node[at(node)].push_back(test);
    const bool is_bad = !test.passed && is_good(test.low) && is_good(test.high);
    if (is_bad && !has_link(out.bad_links, test)) out.bad_links.push_back(test);
  }
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    NodeVerdict& verdict = out.nodes[at(node)];
    const std::vector<PairTest>& own = tests_of_node[at(node)];
    if (!nodes[at(node)].is_fit_by_itself) {
      verdict.fitness = Fitness::kFaulty;
      verdict.why = nodes[at(node)].why_not;
    } else if (!own.empty() && !verdict.exchange_ms) {
      const bool met_good = std::ranges::any_of(own, [&](const PairTest& test) { return is_good(test.other(node)); });
      verdict.fitness = met_good ? Fitness::kFaulty : Fitness::kUndetermined;
      verdict.why = format("its exchange failed with {}{}", names_of_others(node, own),
                           met_good ? "" : ", none of which is known to be good");
    }
  }
}

void judge_compute(const std::vector<NodeFigures>& nodes, const JudgeSettings& settings, Judgement& out) {
  std::vector<double> all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (out.nodes[i].fitness == Fitness::kFit && nodes[i].compute_ms) all.push_back(*nodes[i].compute_ms);
  }
  const std::optional<double> usual = reference(std::move(all));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    NodeVerdict& verdict = out.nodes[i];
    if (verdict.fitness != Fitness::kFit || !nodes[i].compute_ms) continue;
    const double ms = *nodes[i].compute_ms;
    if (ms <= limit(usual, settings.slow_factor, settings.compute_floor_ms)) continue;
    verdict.is_slow_in_compute = true;
    add_why(verdict, format("its matrix product took {:.3g} ms, {:.3g} ms is usual", ms, *usual));
  }
}

// Whether a test between fit nodes is slow. Tests between racks are compared with each other only.
class Pace {
 public:
  Pace(const std::vector<PairTest>& tests, const JudgeSettings& settings, const Judgement& judged)
      : settings_(settings) {
    const auto is_fit = [&](int node) { return judged.nodes[at(node)].fitness == Fitness::kFit; };
    std::vector<PairTest> inside;
    std::vector<double> across_ms;
    for (const PairTest& test : tests) {
      if (!test.passed || !is_fit(test.low) || !is_fit(test.high)) continue;
      if (test.crosses)
        across_ms.push_back(test.time_ms);
      else
        inside.push_back(test);
    }
    inside_ms_ = median(known(best_times(judged.nodes.size(), inside)));
    across_ms_ = median(std::move(across_ms));
  }
  std::optional<double> usual_ms(const PairTest& test) const { return test.crosses ? across_ms_ : inside_ms_; }
  bool is_slow(const PairTest& test) const {
    return test.passed && test.time_ms > limit(usual_ms(test), settings_.slow_factor, settings_.exchange_floor_ms);
  }

 private:
  const JudgeSettings& settings_;
  std::optional<double> inside_ms_;  // the median of the nodes' best times inside their racks
  std::optional<double> across_ms_;  // the median of all tests between racks
};

// An exchange is as slow as the slower one of its two nodes. A node that was fast in any test is not that one. Where
// both were never fast, it is the one that takes part in more slow tests.
void judge_exchange(const std::vector<PairTest>& tests, const JudgeSettings& settings, Judgement& out) {
  const Pace pace(tests, settings, out);
  std::vector<PairTest> slow;  // those that no slow node explains yet
  std::set<int> fast;
  std::set<std::pair<int, int>> fast_links;
  for (const PairTest& test : tests) {
    if (pace.is_slow(test)) {
      slow.push_back(test);
    } else if (test.passed) {
      fast.insert({test.low, test.high});
      fast_links.insert({test.low, test.high});
    }
  }
  const auto is_suspect = [&](int node) { return !fast.contains(node); };
  const auto blame = [&](int node) {
    NodeVerdict& verdict = out.nodes[at(node)];
    const auto best = std::ranges::find_if(tests, [&](const PairTest& test) {
      return test.has(node) && test.passed && test.time_ms == *verdict.exchange_ms;
    });
    verdict.is_slow_in_exchange = true;
    add_why(verdict, format("its best {} took {:.3g} ms, {:.3g} ms is usual", settings.exchange, *verdict.exchange_ms,
                            pace.usual_ms(*best).value_or(0)));
    std::erase_if(slow, [node](const PairTest& test) { return test.has(node); });
  };
  std::set<int> sure;
  for (const PairTest& test : slow) {
    if (is_suspect(test.low) != is_suspect(test.high)) sure.insert(is_suspect(test.low) ? test.low : test.high);
  }
  std::ranges::for_each(sure, blame);
  for (;;) {
    std::map<int, int> explains;
    for (const PairTest& test : slow) {
      if (!is_suspect(test.low) || !is_suspect(test.high)) continue;
      ++explains[test.low];
      ++explains[test.high];
    }
    const auto more =
        std::ranges::find_if(slow, [&](const PairTest& test) { return explains[test.low] != explains[test.high]; });
    if (more == slow.end()) break;
    blame(explains[more->low] > explains[more->high] ? more->low : more->high);
  }
  // A link that was fast in another test is not slow.
  for (const PairTest& test : slow) {
    if (!has_link(out.slow_links, test) && !fast_links.contains({test.low, test.high})) out.slow_links.push_back(test);
  }
}

}  // namespace

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double usual_exchange_ms(const std::vector<std::optional<double>>& best_ms, const JudgeSettings& settings) {
  return limit(median(known(best_ms)), settings.slow_factor, settings.exchange_floor_ms);
}

Judgement judge(const std::vector<NodeFigures>& nodes, const std::vector<PairTest>& tests,
                const JudgeSettings& settings) {
  Judgement out;
  out.nodes.resize(nodes.size());
  const std::vector<std::optional<double>> best_ms = best_times(nodes.size(), tests);
  for (std::size_t i = 0; i < nodes.size(); ++i) out.nodes[i].exchange_ms = best_ms[i];
  judge_fitness(nodes, tests, out);
  judge_compute(nodes, settings, out);
  judge_exchange(tests, settings, out);
  return out;
}

std::optional<int> step_that_failed_everywhere(const std::vector<GpuStanding>& nodes) {
  constexpr std::ptrdiff_t kLeastNodes = 2;  // one node alone does not show that others would fail, too
  const auto counts = [](const GpuStanding& node) { return !node.says_nothing; };
  const auto first = std::ranges::find_if(nodes, counts);
  if (first == nodes.end() || !first->failed_in || std::ranges::count_if(nodes, counts) < kLeastNodes) return {};
  const bool all = std::ranges::all_of(
      nodes, [&](const GpuStanding& node) { return !counts(node) || node.failed_in == first->failed_in; });
  return all ? first->failed_in : std::nullopt;
}

bool no_gathering_worked(const std::vector<Gathering>& tests) {
  return std::ranges::find(tests, Gathering::kFailed) != tests.end() && std::ranges::all_of(tests, [](Gathering test) {
           return test == Gathering::kNone || test == Gathering::kFailed;
         });
}

}  // namespace elastic::health
