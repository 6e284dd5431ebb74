#pragma once

#include <string>

#include "cli/run/launch_settings.h"
#include "src/base/result.h"
#include "src/process/spawn.h"

namespace elastic::run {

// The memory of argv, which /proc shows as the command line.
struct ProcessTitle {
  char* begin = nullptr;
  std::size_t size = 0;  // bytes; the last one stays NUL
};

// Runs a job on this node to its end. It forks: this process becomes the guardian and exits from within; the launcher,
// with agent, store and perhaps the coordinator on one loop, returns. It prints warnings and, unless the job succeeded,
// the failure report to stderr. Returns the exit status: 0 if the job succeeded, 1 if it failed or was stopped,
// kDoNotRequeue if it failed and would fail again, 2 if the log directory, recording or --http-port that the user named
// cannot be used. `inherited` is what InheritedState::capture() saw at the start of the process.
int launch(const LaunchSettings& settings, const process::InheritedState& inherited, const ProcessTitle& title);

// Reports why a job is not begun: on stderr, and in the TORCHELASTIC_ERROR_FILE of this process's parent (empty: it has
// none).
void tell_refusal(const Error& error, const std::string& parent_error_file);

// Waits for the end of the elastic-run of this node that launches in the place of this one. Returns its exit status, or
// 1 with a message if there is no such process, or it was killed. Signals that end a process are ignored meanwhile.
int wait_for_launcher(const LocalTasksSettings& settings);

}  // namespace elastic::run
