#pragma once

#include <string_view>

namespace elastic {

// Writes to stderr and never waits for long: bytes that the reader does not take within 200 ms (a full pipe, a terminal
// after Ctrl-S) are lost, for the job must be stopped and cleaned up in spite of it.
void write_to_stderr(std::string_view text);

}  // namespace elastic
