#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

namespace elastic::run {

// Reads at most `bytes` from `offset` on. Returns nothing, with errno set, if the file cannot be read.
std::optional<std::string> read_part(const std::string& path, off_t offset, std::size_t bytes);

}  // namespace elastic::run
