#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/report/failure.h"

// What the node on which the job first failed tells the others of that worker, so that every node can show it.
namespace elastic::report {

// A failure.json of at most `most_bytes` with that worker alone; of long texts the ends. Empty if it cannot be so
// short.
std::string details_of(FailedWorker worker, const std::string& run_id, std::size_t most_bytes);

// Adds to the report what another node's details_of() says of a worker that is in it. What is no details, is of
// another job or of another worker, changes nothing.
void add_details(JobReport& report, std::string_view details);

}  // namespace elastic::report
