#pragma once

#include <cstdint>

// Bounds of warm workers. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | time of the import server of warm workers, which has the lowest priority and may read thousands of files over a
// network, until it has imported, and to fork those that wait | {kImportServerMs} each | it is killed; workers are
// fresh, and after the first of the two no other server is started |
inline constexpr std::int64_t kImportServerMs = 600'000;

}  // namespace elastic::limits
