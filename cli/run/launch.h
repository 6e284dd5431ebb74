#pragma once

#include <string>

#include "cli/run/launch_settings.h"
#include "src/base/result.h"
#include "src/process/spawn.h"

namespace elastic::run {

// The memory in which argv lies, which /proc shows as the command line.
struct ProcessTitle {
  char* begin = nullptr;
  std::size_t size = 0;  // bytes, the last one stays NUL
};

// Runs a job on this node to its end. Forks: this process becomes the guardian and exits from within;
// the launcher, with coordinator, agent and store on one loop, returns. Prints
// warnings and, unless the job succeeded, the failure report to stderr. Returns the exit status: 0 all
// well, 1 the job failed or was stopped, kDoNotRequeue it failed and would again, 2 the log directory, recording or
// --http-port that the user named cannot be used.
// `inherited` is what InheritedState::capture() saw at the start of the process.
int launch(const LaunchSettings& settings, const process::InheritedState& inherited, const ProcessTitle& title);

// Says why a job is not begun: on stderr, and to who started this process in its TORCHELASTIC_ERROR_FILE (empty:
// nobody).
void tell_refusal(const Error& error, const std::string& parent_error_file);

// For an elastic-run that leaves the launching to another one of this node: waits for its end. Returns its exit status,
// or 1 with a message where there is none, or it was killed. Signals that end a process are ignored meanwhile.
int wait_for_launcher(const LocalTasksSettings& settings);

}  // namespace elastic::run
