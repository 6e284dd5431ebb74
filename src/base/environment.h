#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace elastic {

// The NAME=value strings of a process's environment.
using Environment = std::vector<std::string>;
using Variable = std::pair<std::string, std::string>;

// The value of a variable in an environment; nothing if it is not set.
std::optional<std::string> lookup(const Environment& environment, std::string_view name);

}  // namespace elastic
