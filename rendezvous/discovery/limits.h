#pragma once

#include <cstddef>

// Bounds of discovery. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | entries of jobs in one file (`store_type=file`) | {kEntriesPerFile} | the node that would add one ends, and says
// so |
inline constexpr std::size_t kEntriesPerFile = 256;

}  // namespace elastic::limits
