#include "src/report/failure.h"

#include <algorithm>

#include "src/base/text.h"

namespace elastic::report {

std::string FailedWorker::name() const {
  const std::string node = node_rank == 0 ? "" : format("node {}, ", node_rank);
  return format("rank {} ({}local rank {}, pid {})", rank, node, local_rank, pid);
}

const FailedWorker* JobReport::first_failure() const {
  const auto first = std::ranges::find(failures, false, &FailedWorker::stopped_by_us);
  return first == failures.end() ? nullptr : &*first;
}

std::string rank_ranges(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && std::int64_t{ranks[last + 1]} - ranks[last] <= 1) ++last;
    if (!out.empty()) out += ", ";
    out +=
        ranks[i] == ranks[last] ? format("{}", ranks[i]) : format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace elastic::report
