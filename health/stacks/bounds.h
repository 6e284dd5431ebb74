#pragma once

#include <cstddef>

// Bounds of what is read of a process and told of it; docs/limits.md says what happens at each.
namespace elastic::stacks {

// Threads of Python, calls of one of them, and calls of all.
inline constexpr std::size_t kMostThreads = 256;
inline constexpr std::size_t kMostFrames = 256;
inline constexpr std::size_t kMostFramesOfProcess = 4096;
// The bytes of a function's or a file's name, and of a function's table of lines.
inline constexpr std::size_t kMostNameBytes = 4096;
inline constexpr std::size_t kMostTableBytes = 64 * 1024;
// What the members of a group do, as many as are told.
inline constexpr std::size_t kMostWaits = 4;
// Processes that one worker has started, as many as are looked at.
inline constexpr std::size_t kMostChildren = 64;
// What a node tells of its workers: bytes for each of them, and of all.
inline constexpr std::size_t kMostBytesOfRank = 2048;
inline constexpr std::size_t kMostBytesOfNode = 120 * 1024;
// What is kept of what all nodes of a job tell.
inline constexpr std::size_t kMostBytesOfJob = 16 * 1024 * 1024;

}  // namespace elastic::stacks
