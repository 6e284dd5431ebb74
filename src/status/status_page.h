#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/json.h"

// What `elastic-run --status` prints of a /status document, which may be a newer or older one than ours.
namespace elastic::status {

// Lines of at most `columns` where that can be; 0: as long as they are. All texts are made fit for a terminal. Of
// one job alone where `run_id` is not empty.
std::string status_page(const Json& document, std::string_view run_id, std::size_t columns);

// The same in one line, for a log that is written again and again.
std::string status_line(const Json& document, std::string_view run_id);

// The document is one of /status.
bool is_status(const Json& document);
// A job of that name is in it; always true for an empty one.
bool has_job(const Json& document, std::string_view run_id);

}  // namespace elastic::status
