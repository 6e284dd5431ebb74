#pragma once

#include <optional>

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

}  // namespace elastic::report
