#pragma once

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "cli/program.h"

namespace elastic::cli {

// Reads --warm-workers, --warm-import and --warm-after, and writes into the plan whether the workers of this program
// can be warm.
void plan_warm(const ParsedFlags& flags, const CheckedFlags& checked, const WorkerProgram& program, LaunchPlan& plan);

}  // namespace elastic::cli
