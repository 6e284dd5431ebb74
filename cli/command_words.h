#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elastic::cli {

// The words of a command as a POSIX shell splits them, quotes and backslashes included; nothing is expanded. None where
// a quote is not closed.
std::optional<std::vector<std::string>> words_of_command(std::string_view text);

}  // namespace elastic::cli
