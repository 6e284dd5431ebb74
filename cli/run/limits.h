#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of what the launcher writes and starts. docs/limits.md is made of the rows above them.
namespace elastic::limits {

// | what waits to be written to a recording (`--record`) | {kRecordingWaitingBytes} | the recording ends there, with
// one warning |
inline constexpr std::size_t kRecordingWaitingBytes = 16 * 1024 * 1024;
// | what waits to be written to the file of `--events` | {kEventsWaitingBytes} | events are lost, with one warning, and
// counted in the file |
inline constexpr std::size_t kEventsWaitingBytes = 4 * 1024 * 1024;
// | time of a command of `--on-event`; its output | {kEventCommandMs}; the last {kEventCommandOutputBytes:bytes} | it
// is killed; the rest is dropped |
inline constexpr std::int64_t kEventCommandMs = 30'000;
inline constexpr std::size_t kEventCommandOutputBytes = 4096;
// | time that the end of a job waits for commands of `--on-event` | {kEventCommandsEndMs} | they are killed, with one
// warning |
inline constexpr std::int64_t kEventCommandsEndMs = 10'000;
// | time of a look at the segment file (`--segment-health-dir`) | {kSegmentLookMs} | the node goes on, with a warning |
inline constexpr std::int64_t kSegmentLookMs = 2'000;

}  // namespace elastic::limits
