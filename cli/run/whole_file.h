#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace elastic::run {

// Replaces the file as a whole, or not at all. Returns an errno, or 0.
int replace_file(const std::string& path, std::string_view text);

// The same, and was_read() tells from then on whether somebody has read the file, also where the clock is set back in
// between. A file system that is mounted with noatime never tells.
int replace_unread_file(const std::string& path, std::string_view text);
bool was_read(const struct stat& facts);

}  // namespace elastic::run
