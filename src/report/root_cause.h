#pragma once

#include <optional>
#include <vector>

#include "src/report/failure.h"
#include "src/report/likely_cause.h"

namespace elastic::report {

// The worker that most probably ended the job, and the cause.
struct RootCause {
  const FailedWorker* worker = nullptr;  // of the report
  Cause cause;
};

// Finds the first failure with its likely cause. If that cause is the loss of a peer, the peer failed before, though it
// may have ended later: then this is the first of the others whose output names another cause, those that failed by
// themselves before those that were stopped. None where no rule applies. The result points into `report`.
std::optional<RootCause> find_root_cause(const JobReport& report);

// Puts the worker of one node that wrote its error.json first at the front, as torchrun does: it failed first, also
// where another worker ended sooner, or it was still exiting when it was told to stop. All workers that wrote their
// error.json before the first failure did are put before it, in the order in which they wrote: they did not end because
// they were stopped (error_came_first), and their time is set as much before the first failure's as their files are
// older. Only the files' times are compared with each other, for a file system has a clock of its own. Without effect
// where the first failure is of another node than `node_rank`, or its file's time is not known.
void put_first_error_first(std::vector<FailedWorker>& failures, int node_rank);

}  // namespace elastic::report
