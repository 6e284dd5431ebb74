#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "src/base/exit_status.h"

// The children of this process. No other file waits for a child, and none makes one but spawn.h, which executes
// programs, and the guardian, which splits the launcher off.
namespace elastic::process {

// Makes a copy of this process that does `work` and ends with what that returns. Returns its pid; the caller reaps it.
// None if no process can be made: errno says why.
std::optional<pid_t> fork_child(const std::function<int()>& work);

struct EndedChild {
  pid_t pid = 0;
  ExitStatus status;
};

// A child that has ended and is not reaped. Until it is, no other process has its pid, and no other group its group's.
std::optional<EndedChild> ended_child();
std::optional<EndedChild> reap_any_child();
// Reaps this one; none if it has not ended, or is no child of ours.
std::optional<ExitStatus> reap_child(pid_t child);
// Reaps all that have ended, whoever they are.
void reap_children();
// Waits until this child has ended, and reaps it. If it is no child of ours the status is 0.
ExitStatus wait_for_child(pid_t child);

// There are children, those that have ended and are not reaped included.
bool has_children();
bool is_child(pid_t process);
bool is_child_at(int pidfd);
// A signal has stopped the child. Asks the kernel, not /proc, which may not be mounted.
bool is_stopped_child(pid_t child);

}  // namespace elastic::process
