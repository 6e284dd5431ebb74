#pragma once

#include <optional>

#include "src/report/failure.h"
#include "src/report/likely_cause.h"

namespace elastic::report {

// Which worker most probably brought the job down, and of what.
struct Culprit {
  const FailedWorker* worker = nullptr;  // of the report
  Cause cause;
};

// The first failure with its likely cause. Where that is the loss of a peer the peer failed before, though perhaps it
// ended later: then the first of the others, those that failed by themselves before those that were stopped, whose last
// words say more. Nothing where no rule fits. The result points into `report`.
std::optional<Culprit> likely_culprit(const JobReport& report);

}  // namespace elastic::report
