#pragma once

#include "cli/launch_plan.h"
#include "src/base/environment.h"

namespace elastic::cli {

// Plans the CPUs and the memory of each worker, where --numa-binding or --numa-affinity asks for it: by the GPUs that
// they see, or without any by local rank. One warning names the workers that cannot be bound as asked for, with the
// reason. The number of workers has been planned.
void plan_numa(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan);

// What --dry-run says of a worker's place: "CPUs 0-15; memory of NUMA node 0 preferred".
std::string text_of(const numa::Placement& placement);

}  // namespace elastic::cli
