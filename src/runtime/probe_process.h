#pragma once

#include <string>
#include <vector>

#include "health/probe/probe.h"
#include "src/agent/worker_environment.h"

namespace elastic::runtime {

// With it as its first argument this program is the probe of its node's check, over its stdout; behind it stand the
// number of workers and the log directory, which may be empty. Only elastic-run itself starts one.
inline constexpr const char* kProbeArgument = "--health-probe";

// The variables that it looks at, DLRover's: how many seconds a test may take; a local rank: the tests of the node that has
// it are to fail, to try what follows.
inline constexpr const char* kProbeVariables[] = {"NETWORK_CHECK_TIMEOUT", "MOCK_ERR_RANK"};
health::ProbeSettings probe_settings(const agent::Environment& environment, int local_world_size);

// The probe's whole life. `arguments`: the command line without the program's name. Returns the exit status.
int run_probe_process(const std::vector<std::string>& arguments, const agent::Environment& environment);

}  // namespace elastic::runtime
