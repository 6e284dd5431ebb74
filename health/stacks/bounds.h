#pragma once

#include <cstddef>

// Bounds of what is read of a process and told of it. docs/limits.md is made of the rows above them.
namespace elastic::stacks {

// | `--stacks`: threads of a Python process; calls of one thread, and of all | {kMostThreads}; {kMostFrames},
// {kMostFramesOfProcess} | the rest is left out, and the page says so |
inline constexpr std::size_t kMostThreads = 256;
inline constexpr std::size_t kMostFrames = 256;
inline constexpr std::size_t kMostFramesOfProcess = 4096;
// | `--stacks`: characters of a function's name, and of a file's; what is read of either, and of a function's table of
// lines | 128, 256; {kMostNameBytes}, {kMostTableBytes} | the name's end or the path's beginning is left out; the line
// is not known |
inline constexpr std::size_t kMostNameBytes = 4096;
inline constexpr std::size_t kMostTableBytes = 64 * 1024;
// | `--stacks` of a job: what members of a group do | {kMostWaits} | the rest is left out |
inline constexpr std::size_t kMostWaits = 4;
// | `--stacks`: processes that one worker has started | {kMostChildren} | the rest is not looked at, and the page says
// how many |
inline constexpr std::size_t kMostChildren = 64;
// | `--stacks` of a job: what a node tells of each worker, and of all; what is kept of all nodes |
// {kMostBytesOfRank:bytes}, {kMostBytesOfNode:bytes}; {kMostBytesOfJob:bytes} | older calls, then stacks, and of a job
// also members of a group are left out and counted |
inline constexpr std::size_t kMostBytesOfRank = 2048;
inline constexpr std::size_t kMostBytesOfNode = 120 * 1024;
inline constexpr std::size_t kMostBytesOfJob = 16 * 1024 * 1024;

}  // namespace elastic::stacks
