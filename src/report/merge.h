#pragma once

#include <vector>

#include "src/base/result.h"
#include "src/report/failure.h"

namespace elastic::report {

// Merges several nodes' reports of one job; a single one is returned unchanged. The
// failures of the last round are sorted by cause: workers that lost their peers come behind
// those that failed for another reason (the nodes' clocks differ, and peers fail within
// milliseconds), and those that were only stopped behind both; within each group they are in order of time, then of
// rank. A worker that is in two reports is listed once, with what either knows. Everything else comes from
// the node with the lowest rank. Fails on no report, and where run ids differ.
Result<JobReport> merge_reports(std::vector<JobReport> reports);

// Whether both are about the same worker: the same node, rank and process.
bool are_one(const FailedWorker& one, const FailedWorker& other);
// Adds what `other` has about the same worker and `worker` has not.
void complete(FailedWorker& worker, const FailedWorker& other);

}  // namespace elastic::report
