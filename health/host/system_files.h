#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Small files of procfs and sysfs. What cannot be read is empty, or nothing.
namespace elastic::health {

using Count = std::optional<std::uint64_t>;

// Read of one directory; the most CPUs that a kernel is built for.
inline constexpr std::size_t kSystemEntries = 8192;

// The first 64 KiB of a file. Waits for nobody, also where it is a pipe.
std::string read_text(const std::string& path);
// A state, a rate: without blanks around it, and fit for a message.
std::string read_word(const std::string& path);
// The names in a directory, sorted.
std::vector<std::string> names_in(const std::string& path);
bool is_there(const std::string& path);

// A whole number that is not negative.
Count to_count(std::string_view text);
Count count_in(const std::string& path);

}  // namespace elastic::health
