#pragma once

#include <cstddef>
#include <string>
#include <string_view>
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

// The node on which the job first failed tells the others about that worker, so that every node can show it.

// Makes a failure.json of at most `most_bytes` with that worker alone, and only the ends of long texts. Empty if it
// cannot be so short.
std::string details_of(FailedWorker worker, const std::string& run_id, std::size_t most_bytes);

// Adds to the report what another node's details_of() says about a worker that is in it. Details that are malformed, or
// of another job or worker, change nothing.
void add_details(JobReport& report, std::string_view details);

}  // namespace elastic::report
