#pragma once

#include <string>
#include <string_view>

namespace elastic::run {

// Replaces the file as a whole, or not at all. Returns an errno, or 0.
int replace_file(const std::string& path, std::string_view text);

}  // namespace elastic::run
