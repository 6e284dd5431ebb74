#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of torchelastic's file timers, of one node (docs/hangs.md). docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | a request of a file timer; file timers of a node at once | {kFileTimerLineBytes}; {kFileTimers} | it is passed
// over, with one warning if there are too many timers |
inline constexpr std::size_t kFileTimerLineBytes = 4096;  // the client keeps to PIPE_BUF
inline constexpr std::size_t kFileTimers = 4096;
// | the stacks of workers whose file timers have expired | {kFileTimerStacksMs} | the signal is sent without those that
// are missing |
inline constexpr std::int64_t kFileTimerStacksMs = 1500;
// | what workers write to the FIFO of file timers at once | 1 MiB (64 KiB where the system allows no more) in 50 ms |
// the client raises an exception in its script, as with torchrun |
// | the stack of an expired file timer in a report | 64 calls, names of 256 bytes | the oldest calls are left out,
// names are cut |

}  // namespace elastic::limits
