#pragma once

#include "cli/launch_plan.h"
#include "src/base/environment.h"

namespace elastic::cli {

// Plans how many GPUs the check before a launch tests: those that its workers see, unless ELASTIC_RUN_PROBE_GPUS,
// --accelerator or --check-probe say otherwise. On a host without GPUs the plan has no line about them. Fails where the
// variable cannot be read.
Status plan_gpu_test(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan);

}  // namespace elastic::cli
