#include "health/judge/gpu_failures.h"

#include <algorithm>
#include <cstddef>

namespace elastic::health {

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
