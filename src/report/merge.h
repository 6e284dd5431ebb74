#pragma once

#include <vector>

#include "src/base/result.h"
#include "src/report/failure.h"

namespace elastic::report {

// What several nodes' reports of one job say together; a single one is returned as it is. The
// failures of the last round come first cause first: workers that lost their peers stand behind
// those that failed for a reason of their own (the nodes' clocks differ, and peers fail within
// milliseconds), those that were only stopped behind both; within each in order of time, then of
// rank. A worker that two reports name is there once, with what either knows. Everything else is of
// the node with the lowest rank. Fails on no report, and where run ids differ.
Result<JobReport> merge_reports(std::vector<JobReport> reports);

// Whether both are about one worker: of one node, rank and process.
bool are_one(const FailedWorker& one, const FailedWorker& other);
// Adds what `other` knows about the same worker and `worker` does not.
void complete(FailedWorker& worker, const FailedWorker& other);

}  // namespace elastic::report
