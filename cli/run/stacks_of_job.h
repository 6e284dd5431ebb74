#pragma once

#include <expected>

#include "cli/run/stacks_request.h"
#include "health/stacks/document.h"

namespace elastic::run {

// Asks an elastic-run of the job at `request.place` what all workers of the job are doing. Without an answer it returns
// the exit status, and the reason is on stderr.
std::expected<stacks::StacksDocument, int> stacks_of_job(const StacksRequest& request);

}  // namespace elastic::run
