#pragma once

#include <string>
#include <vector>

namespace elastic::run {

// Prints the failure report of an earlier run again, to stdout, from the failure.json in a run's directory;
// from those in its direct subdirectories where it has none itself (--log-dir). Several directories, and what lies
// in several, are the nodes of one job. `html_file`, unless it is empty, gets the report as a page instead, "-"
// being stdout. Returns the exit status: 0, or 2 with a message where there is no report or it cannot be read.
int print_report(const std::vector<std::string>& directories, const std::string& html_file);

}  // namespace elastic::run
