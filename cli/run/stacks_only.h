#pragma once

#include "cli/run/stacks_request.h"
#include "src/process/spawn.h"

namespace elastic::run {

// Prints the stacks of these processes. Returns the exit status: 0, or 1 with the reason on stderr if no stack could be
// read.
int print_stacks(const StacksRequest& request, const process::InheritedState& inherited);

}  // namespace elastic::run
