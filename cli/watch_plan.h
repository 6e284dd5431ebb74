#pragma once

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "src/base/environment.h"

namespace elastic::cli {

// Plans how it is seen how far workers are, what follows when they make no progress, and whether their own timers are
// served. The directory of the launch is not its matter.
void plan_watching(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                   LaunchPlan& plan);

}  // namespace elastic::cli
