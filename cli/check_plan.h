#pragma once

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "src/base/environment.h"

namespace elastic::cli {

// Plans whether nodes are checked before training, and what the check consists of on this node. With --hang=restart the
// latter is planned in any case. Fails where a test cannot be made as it is asked for.
Status plan_check(const ParsedFlags& flags, const CheckedFlags& checked, const Environment& environment,
                  const HostView& host, LaunchPlan& plan);

}  // namespace elastic::cli
