#pragma once

#include <cstddef>
#include <cstdint>

// The bounds of what is said about a hang, of one node each. docs/limits.md says what happens at them.
namespace elastic::hang::bounds {

// Frames of a stack, and bytes of a name in one.
inline constexpr std::size_t kFrames = 8;
inline constexpr std::size_t kNameBytes = 256;
// Different stacks, groups of ranks that communicate, and facts about these.
inline constexpr std::size_t kStacks = 1024;
inline constexpr std::size_t kGroups = 4096;
inline constexpr std::size_t kGroupFacts = 65'536;
// Ranks of a node, and runs in one list of ranks.
inline constexpr std::size_t kRanks = 4096;
inline constexpr std::size_t kRuns = 65'536;
// Bytes of a reason.
inline constexpr std::size_t kReasonBytes = 400;
// Ports of a node's network that are told to be looked at.
inline constexpr std::size_t kLinkFaults = 16;
// Keys of the worker store that somebody waits for.
inline constexpr std::size_t kStoreWaits = 16;
// Groups of ranks that a report shows, and culprits that a verdict names.
inline constexpr std::size_t kGroupsShown = 64;
inline constexpr std::size_t kCulprits = 64;

}  // namespace elastic::hang::bounds
