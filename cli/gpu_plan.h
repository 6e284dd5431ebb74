#pragma once

#include "cli/launch_plan.h"
#include "src/base/environment.h"

namespace elastic::cli {

// How many GPUs the check of a launch tests: those that its workers see, unless ELASTIC_RUN_PROBE_GPUS, --accelerator
// or
// --check-probe say otherwise. Of a host that has none nothing is said. Fails where the variable cannot be read.
Status plan_gpu_test(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan);

}  // namespace elastic::cli
