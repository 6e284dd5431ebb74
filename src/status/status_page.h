#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"

// What `elastic-run --status` prints of a /status document, which an older or newer elastic-run may have written.
namespace elastic::status {

// Makes lines of at most `columns` where possible; 0: of any length. All texts are made fit for a terminal. Shows only
// one job where `run_id` is not empty.
std::string status_page(const Json& document, std::string_view run_id, std::size_t columns);

// The same in one line, for repeated lines in a log.
std::string status_line(const Json& document, std::string_view run_id);

// Whether the document is one of /status.
bool is_status(const Json& document);
// Whether a job of that name is in it; true for an empty name.
bool has_job(const Json& document, std::string_view run_id);
// The peer ports of the nodes of this job (`door` in /status), of all jobs for an empty name, by rank:
// "10.0.0.2:40123".
std::vector<std::string> peer_addresses(const Json& document, std::string_view run_id);

}  // namespace elastic::status
