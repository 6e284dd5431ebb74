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

}  // namespace elastic::report
