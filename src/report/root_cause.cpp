#include "src/report/root_cause.h"

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

}  // namespace elastic::report
