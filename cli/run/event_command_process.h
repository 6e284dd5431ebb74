#pragma once

#include <cstdint>
#include <string>

#include "cli/run/worker_environment.h"
#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/process/spawn.h"

// The process beside the launcher that runs the commands of --on-event. It is a child of the guardian, which ends it
// with all other processes, and not of the launcher, which ends its own children at the end of each round. The launcher
// and it exchange packets.
namespace elastic::run {

inline constexpr const char* kEventProcessName = "elastic_events";

// The launcher's packet is this, followed by what the command gets on stdin.
struct EventOrder {
  std::uint32_t number = 0;
};
// The answer is this, followed by the end of the command's output, or by why the command was not started.
struct EventReport {
  enum class How : std::uint32_t { kEnded, kAtDeadline, kNotStarted };
  std::uint32_t number = 0;
  How how = How::kEnded;
  std::int32_t code = 0;
  std::int32_t signal = 0;
};

// Starts the process, which runs /bin/sh -c `command`; returns the launcher's end of the channel. To be called in the
// launcher while that has one thread and no child. When the launcher closes the channel, all commands are killed with
// all that they have started, and the process ends.
Result<UniqueFd> start_event_process(const std::string& command, const Environment& environment,
                                     const process::InheritedState& inherited);

}  // namespace elastic::run
