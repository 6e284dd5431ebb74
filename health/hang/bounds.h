#pragma once

#include <cstddef>
#include <cstdint>

// The bounds of what is said about a hang, of one node each. docs/limits.md is made of the rows above them.
namespace elastic::hang::bounds {

// | facts about a hang, of one node: frames of a stack; different stacks; groups of ranks; facts about these; a name |
// {kFrames}; {kStacks}; {kGroups}; {kGroupFacts}; {kNameBytes} | inner frames and the first ones are kept; where facts
// about groups are left out, none of that node are used; a name is cut ([hangs.md](hangs.md)) |
inline constexpr std::size_t kFrames = 8;
inline constexpr std::size_t kNameBytes = 256;
inline constexpr std::size_t kStacks = 1024;
inline constexpr std::size_t kGroups = 4096;
inline constexpr std::size_t kGroupFacts = 65'536;
// | facts about a hang, of one node: ranks, and runs in one list of ranks; a reason | {kRanks}; {kRuns}; {kReasonBytes}
// | the first ones are kept; a reason is cut |
inline constexpr std::size_t kRanks = 4096;
inline constexpr std::size_t kRuns = 65'536;
inline constexpr std::size_t kReasonBytes = 400;
// | ports of a node's network that are to be looked at for a hang | {kLinkFaults} | the inactive ones are kept first |
inline constexpr std::size_t kLinkFaults = 16;
// | keys of the worker store that are told with a hang | {kStoreWaits} | those with the most clients are kept |
inline constexpr std::size_t kStoreWaits = 16;
// | a report of a hang: culprits, groups of ranks | {kCulprits}, {kGroupsShown} (8 on the screen) | the others are
// counted |
inline constexpr std::size_t kGroupsShown = 64;
inline constexpr std::size_t kCulprits = 64;

}  // namespace elastic::hang::bounds
