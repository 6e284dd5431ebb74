#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch_plan.h"
#include "cli/run/worker_environment.h"
#include "src/base/environment.h"

namespace elastic::cli {

// The directories of PATH, in its order; where it is not set, those that execvp and Python search.
std::vector<std::string> path_folders(const Environment& environment);

// Whether it is a file that this process may execute.
bool can_execute(const HostView& host, const std::string& path);

// The first program of that name on PATH.
std::optional<std::string> on_path(const Environment& environment, const HostView& host, const std::string& name);

// The words of a command as a POSIX shell splits them, quotes and backslashes included; nothing is expanded. None where
// a quote is not closed.
std::optional<std::vector<std::string>> words_of_command(std::string_view text);

}  // namespace elastic::cli
