#pragma once

#include <string>

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "cli/program.h"
#include "src/base/environment.h"

// Parts of the launch plan: each plan_x() reads its flags and writes what follows from them into the plan.
namespace elastic::cli {

// Plans whether nodes are checked before training, and what the check consists of on this node. With --hang=restart the
// latter is planned in any case. Plans the file by which the scheduler drains this node, too. Fails where a test cannot
// be made as it is asked for, or the file's directory cannot be used.
Status plan_check(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                  const HostView& host, LaunchPlan& plan);

// Plans how it is seen how far workers are, what follows when they make no progress, and whether their own timers are
// served. The directory of the launch is not its matter.
void plan_watching(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                   LaunchPlan& plan);

// Reads --warm-workers, --warm-import and --warm-after, and writes into the plan whether the workers of this program
// can be warm.
void plan_warm(const ParsedFlags& flags, const CheckedFlags& checked, const WorkerProgram& program, LaunchPlan& plan);

// Plans the CPUs and the memory of each worker, where --numa-binding or --numa-affinity asks for it: by the GPUs that
// they see, or without any by local rank. One warning names the workers that cannot be bound as asked for, with the
// reason. The number of workers has been planned.
void plan_numa(const ParsedFlags& flags, const Environment& environment, const HostView& host, LaunchPlan& plan);
// What --dry-run says of a worker's place: "CPUs 0-15; memory of NUMA node 0 preferred".
std::string text_of(const numa::Placement& placement);

}  // namespace elastic::cli
