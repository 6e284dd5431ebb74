#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/launch_plan.h"
#include "src/agent/worker_environment.h"

namespace elastic::cli {

// The directories of PATH, in its order; where it is not set those that execvp and Python search.
std::vector<std::string> path_folders(const agent::Environment& environment);

// A file, and this process may execute it.
bool can_execute(const HostView& host, const std::string& path);

// The program of that name that PATH finds.
std::optional<std::string> on_path(const agent::Environment& environment, const HostView& host, const std::string& name);

}  // namespace elastic::cli
