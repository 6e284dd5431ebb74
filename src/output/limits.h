#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of workers' output. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | a line of a worker on the console | {kLogLineBytes} | it is printed in pieces, each with the prefix; the log file
// has the whole line |
inline constexpr std::size_t kLogLineBytes = 64 * 1024;
// | output that waits for a slow console | {kConsoleWaitingBytes} for stdout and stderr each | while the console takes
// 256 KiB in 200 ms, workers wait for it; otherwise lines are dropped and counted until half is free, with one message
// in their place (for stdout at the end, on stderr) |
inline constexpr std::size_t kConsoleWaitingBytes = 4 * 1024 * 1024;
// | output that pipes still hold for a slow console at the end of a round | {kConsoleRestBytes} for stdout and stderr
// each, above what waits already | this output waits, but the next round does not; more, or all of it if the console
// has taken nothing for 200 ms, is dropped and counted |
inline constexpr std::size_t kConsoleRestBytes = 128 * 1024 * 1024;
// | a log file of a worker (`--log-max-bytes`) | none, or the value of the option, {kLeastLogMaxBytes} at least | it
// becomes the older of two files, between two lines; a line of more than 64 KiB, or longer than a file, may be cut |
inline constexpr std::uint64_t kLeastLogMaxBytes = 4096;
// | output that waits for a log file | {kLogFileWaitingBytes} each | its worker waits; a file that does not answer for
// 1 s is given up with one warning |
inline constexpr std::size_t kLogFileWaitingBytes = 16 * 1024 * 1024;
// | the end of the job | consoles and log files that make progress are waited for; 1 s (console) or 1.2 s (log
// directory) without progress end that | what is left is counted, or reported |
// | waiting, in a log | a line after 10 s, 3 s where it waits for other nodes, then one every 30 s | |
// | the status line | one column less than the width of the terminal; none below 20 columns | the text is cut, the time
// is kept ([observing.md](observing.md#the-log)) |

}  // namespace elastic::limits
