#include "src/report/root_cause.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace elastic::report {
namespace {

std::optional<RootCause> who_said_more(const JobReport& report, const FailedWorker& victim) {
  for (const bool stopped : {false, true}) {
    for (const FailedWorker& worker : report.failures) {
      if (&worker == &victim || worker.stopped_by_us != stopped) continue;
      auto cause = cause_in_output(worker);
      if (cause && !cause->lost_peer) return RootCause{&worker, std::move(*cause)};
    }
  }
  return {};
}

constexpr std::int64_t kNsOfMs = 1'000'000;

}  // namespace

std::optional<RootCause> find_root_cause(const JobReport& report) {
  const FailedWorker* first = report.first_failure();
  if (first == nullptr) return {};
  auto cause = likely_cause(*first);
  if (!cause) return {};
  if (cause->lost_peer) {
    if (auto other = who_said_more(report, *first)) return other;
  }
  return RootCause{first, std::move(*cause)};
}

void put_first_error_first(std::vector<FailedWorker>& failures, int node_rank) {
  const auto first = std::ranges::find(failures, false, &FailedWorker::stopped_by_us);
  if (first == failures.end() || first->node_rank != node_rank || first->error_written_ns == 0) return;
  const std::int64_t limit_ns = first->error_written_ns;
  const std::int64_t wall_ms = first->wall_ms;
  const auto is_earlier = [&](const FailedWorker& worker) {
    return worker.node_rank == node_rank && worker.error_written_ns != 0 && worker.error_written_ns < limit_ns;
  };
  const auto place = std::distance(failures.begin(), first);
  std::vector<FailedWorker> earlier;
  std::ranges::copy_if(failures, std::back_inserter(earlier), is_earlier);
  // Only workers that were stopped come before the first failure.
  const auto before = std::count_if(failures.begin(), failures.begin() + place, is_earlier);
  std::erase_if(failures, is_earlier);
  std::ranges::stable_sort(earlier, {}, &FailedWorker::error_written_ns);
  for (FailedWorker& worker : earlier) {
    worker.error_came_first = worker.error_came_first || worker.stopped_by_us;
    worker.stopped_by_us = false;
    worker.wall_ms = wall_ms - std::max<std::int64_t>((limit_ns - worker.error_written_ns) / kNsOfMs, 1);
  }
  failures.insert(failures.begin() + place - before, earlier.begin(), earlier.end());
}

}  // namespace elastic::report
