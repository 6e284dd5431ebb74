#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Sets of CPUs or NUMA nodes, by their numbers.
namespace elastic::numa {

// Numbers from here on are taken for a mistake: more than the CPUs (8192) and the nodes (1024) of the largest kernels.
// | the number of a CPU or a NUMA node in sysfs | below {kMostNumbers} | the file counts as not there |
inline constexpr int kMostNumbers = 1 << 16;

// Reads a list as sysfs writes it: "0-3,8,10-11", with a line end or none. Returns the numbers sorted, each once;
// an empty list has none. Nothing where it is no such list, or has a number from kMostNumbers on.
std::optional<std::vector<int>> parse_number_list(std::string_view text);

// The set as the kernel's calls take it: bit n of all words, in order, is the number n. Each is below kMostNumbers.
std::vector<unsigned long> mask_of(std::span<const int> numbers);

// The numbers that are in both; both are sorted, as is the result.
std::vector<int> intersection(std::span<const int> one, std::span<const int> other);

}  // namespace elastic::numa
