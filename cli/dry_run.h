#pragma once

#include <string>

#include "cli/launch_plan.h"
#include "cli/parse.h"

namespace elastic::cli {

// The plan as --dry-run prints it, ending in a line end: each value and where it came from, the command, and the
// variables that each worker gets on top of the launcher's environment.
std::string dry_run_text(const LaunchPlan& plan);

// The same as JSON (--dry-run=json): {"version", "plan", "flags", "warnings", "workers"}.
std::string dry_run_json(const LaunchPlan& plan, const ParsedFlags& flags);

}  // namespace elastic::cli
