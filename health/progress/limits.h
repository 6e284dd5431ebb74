#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of what shows how far ranks are (docs/progress.md). docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | what is looked at for progress: of a line; of one read or look at a file, its end; lines of one stream in a tenth
// of a second | {kProgressLineBytes}; {kProgressReadBytes}; {kProgressLines} | the rest is passed over |
inline constexpr std::size_t kProgressLineBytes = 512;
inline constexpr std::size_t kProgressReadBytes = 16 * 1024;
inline constexpr std::size_t kProgressLines = 50;
// | `--progress-pattern`; the memory of its expression | {kProgressPatternBytes}; {kProgressPatternMemory:bytes} | it
// is refused, exit status 2 |
inline constexpr std::size_t kProgressPatternBytes = 1024;
inline constexpr std::int64_t kProgressPatternMemory = 1024 * 1024;
// | DLRover's runtime-metrics file | {kProgressFileBytes} | it says nothing |
inline constexpr std::size_t kProgressFileBytes = 4096;
// | a node's reports of progress to its coordinator | one in {kProgressReportMs}, of two ranks | the next one says what
// is new |
inline constexpr std::int64_t kProgressReportMs = 5000;
// | what a worker writes to `ELASTIC_RUN_PROGRESS` at once | 64 KiB in 50 ms | the worker waits |

// | a message of NVRx's client | {kNvrxMessageBytes} | its connection ends, with one warning |
inline constexpr std::size_t kNvrxMessageBytes = 64 * 1024;
// | connections to the socket of a rank's NVRx client, or to that of the launcher | {kNvrxConnections} | a further one
// is closed |
inline constexpr std::size_t kNvrxConnections = 4;
// | answers that an NVRx client has not read | what the kernel keeps for it | its connection ends |

}  // namespace elastic::limits
