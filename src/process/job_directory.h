#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"

namespace elastic::process {

// Makes a directory of mode 0700 in `parent`, for what workers of this launch reach by a path. The process that ends
// last removes it: the guardian, also where the launcher was killed.
Result<std::string> make_job_directory(const std::string& parent);

// Removes the directory, and the files right in it; what is in a directory below it stays. Its file system may hang,
// so a child process does it, and this call waits for that at most so many milliseconds.
void remove_job_directory(const std::string& path, std::int64_t patience_ms);

}  // namespace elastic::process
