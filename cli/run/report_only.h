#pragma once

#include <string>
#include <vector>

namespace elastic::run {

// Prints the failure report of an earlier run to stdout, from the failure.json in a run's directory, or
// from those in its direct subdirectories if it has none itself (--log-dir). Several reports are those of the nodes of
// one job. `html_file`, unless it is empty, gets the report as a page instead; "-" is
// stdout. Returns the exit status: 0, or 2 with a message if there is no report or it cannot be read.
int print_report(const std::vector<std::string>& directories, const std::string& html_file);

}  // namespace elastic::run
