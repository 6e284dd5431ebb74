#pragma once

#include <cstddef>

// Bounds of what a node tells of itself. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | a line of `--events` | {kEventLineBytes:bytes} | its texts and lists are cut, and it says so
// ([observing.md](observing.md#events)) |
inline constexpr std::size_t kEventLineBytes = 4096;
// | commands of `--on-event` at once; events that wait for one | {kEventCommands}; {kEventCommandsWaiting} | the event
// waits; further events are dropped, and one warning counts them |
inline constexpr std::size_t kEventCommands = 4;
inline constexpr std::size_t kEventCommandsWaiting = 64;

}  // namespace elastic::limits
