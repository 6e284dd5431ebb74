#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace elastic::process {

// The first word of a file of sysfs; empty where there is none, or where it may not be read.
std::string word_in(const std::filesystem::path& path);

// The entries of a directory, by name; empty where it is not there.
std::vector<std::filesystem::path> sorted_entries(const std::filesystem::path& directory);

}  // namespace elastic::process
