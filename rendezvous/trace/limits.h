#pragma once

#include <cstddef>

// Bounds of recordings. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | a line of a recording that is read (`--replay`) | {kRecordingLineBytes} | refused, exit status 2 |
inline constexpr std::size_t kRecordingLineBytes = 16 * 1024 * 1024;

}  // namespace elastic::limits
