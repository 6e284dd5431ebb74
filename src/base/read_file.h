#pragma once

#include <sys/types.h>

#include <cstddef>
#include <expected>
#include <string>

namespace elastic {

// At most `most` bytes of a file, from `offset` on (0 also reads what cannot be sought in). Fails with the value of
// errno, also in the middle. It does not wait for the other end of a pipe, and takes 4 KiB of memory at least, about
// three times what the file has at most.
std::expected<std::string, int> read_file(const std::string& path, std::size_t most, off_t offset = 0);

}  // namespace elastic
