#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Reads small files of procfs and sysfs. A file that cannot be read gives an empty text, or nothing.
namespace elastic::health {

using Count = std::optional<std::uint64_t>;

// The most entries that are read of a directory: as many as a kernel may have CPUs.
inline constexpr std::size_t kSystemEntries = 8192;

// The first 64 KiB of a file. Never blocks, even on a pipe.
std::string read_text(const std::string& path);
// A text such as a state or a rate, trimmed and printable.
std::string read_word(const std::string& path);
// The names in a directory, sorted.
std::vector<std::string> names_in(const std::string& path);
bool is_there(const std::string& path);

// Nothing where the text is not a whole number, or a negative one.
Count to_count(std::string_view text);
Count count_in(const std::string& path);

}  // namespace elastic::health
