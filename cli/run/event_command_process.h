#pragma once

#include <cstdint>
#include <string>

#include "cli/run/worker_environment.h"
#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/process/spawn.h"

// The process beside the launcher that runs the commands of --on-event. It is no child of the launcher, which ends
// whatever it has started at the end of each round, but one of the guardian, which ends it with all else. The launcher
// and it talk in packets.
namespace elastic::run {

inline constexpr const char* kEventProcessName = "elastic_events";

// The launcher's packet: this, and behind it what the command gets on stdin.
struct EventOrder {
  std::uint32_t number = 0;
};
// The answer: this, and behind it the end of the output, or why it was not started.
struct EventReport {
  enum class How : std::uint32_t { kEnded, kAtDeadline, kNotStarted };
  std::uint32_t number = 0;
  How how = How::kEnded;
  std::int32_t code = 0;
  std::int32_t signal = 0;
};

// Starts it, for /bin/sh -c `command`; returns the launcher's end of the channel. To be called in the launcher while it
// has one thread and no child. When the channel is closed there, all commands are killed with whatever they have
// started, and the process ends.
Result<UniqueFd> start_event_process(const std::string& command, const Environment& environment,
                                     const process::InheritedState& inherited);

}  // namespace elastic::run
