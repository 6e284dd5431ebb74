#pragma once

#include <cstddef>

#include "src/base/limits.h"

// Bounds of the coordinators of a process. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | newcomers that wait because another node has the rank that they claim | {kHeldNodes} | a further one is told to
// come again |
inline constexpr std::size_t kHeldNodes = 64;
// | failures of a round that its result contains | {kFailuresKept} | those that most likely are the cause are kept |
inline constexpr std::size_t kFailuresKept = 64;
// | losses of one node after which it is quarantined | {kMaxLossesPerNode} | a greater number counts as so many |
inline constexpr int kMaxLossesPerNode = 1000;
// | nodes whose losses are remembered | {kLossNodes} | an eighth of them is forgotten: those that may come back the
// earliest |
inline constexpr std::size_t kLossNodes = 16384;
// | what a coordinator transfers to the next leader: hosts that were lost or are quarantined, those that are evicted,
// and nodes that are out for a hang; what it does not know itself | {kTransferredHosts} each;
// {kTransferredMoreBytes} | the next leader does not know further evicted hosts by name, and takes further nodes that
// are out into the next round |
inline constexpr std::size_t kTransferredHosts = 64;
inline constexpr std::size_t kTransferredMoreBytes = 16 * 1024;
// | nodes that were charged with hangs, as a coordinator remembers them; as it transfers them | {kHangCharges};
// {kHangChargesBytes} | those that were charged first are forgotten |
inline constexpr std::size_t kHangCharges = 64;
inline constexpr std::size_t kHangChargesBytes = 8 * 1024;
// | a report of a hang, of all nodes together | {kHangReportsBytes}, or 8 KiB for each | groups of ranks are left out,
// and counted |
inline constexpr std::size_t kHangReportsBytes = 64 * 1024 * 1024;

}  // namespace elastic::limits
