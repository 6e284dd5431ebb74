#pragma once

#include <string_view>

namespace elastic {

// Writes to stderr and never waits for long: what a reader does not take (a full pipe, a terminal after
// Ctrl-S) within a moment is lost, for a job must be stopped and cleared away in spite of it.
void write_to_stderr(std::string_view text);

}  // namespace elastic
