#pragma once

#include "src/process/spawn.h"
#include "src/runtime/launch_settings.h"

namespace elastic::runtime {

// Runs a job on this node to its end: coordinator, agent and store on one loop, in this thread. Prints
// warnings and, unless the job succeeded, the failure report to stderr. Returns the exit status: 0 all
// well, 1 the job failed or was stopped, 2 the log directory that the user named cannot be used.
// `inherited` is what InheritedState::capture() saw at the start of the process.
int launch(const LaunchSettings& settings, const process::InheritedState& inherited);

}  // namespace elastic::runtime
