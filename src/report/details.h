#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/report/failure.h"

// The node on which the job first failed tells the others about that worker, so that every node can show it.
namespace elastic::report {

// Makes a failure.json of at most `most_bytes` with that worker alone, and only the ends of long texts. Empty if it
// cannot be so short.
std::string details_of(FailedWorker worker, const std::string& run_id, std::size_t most_bytes);

// Adds to the report what another node's details_of() says about a worker that is in it. Details that are malformed, or
// of another job or worker, change nothing.
void add_details(JobReport& report, std::string_view details);

}  // namespace elastic::report
