#pragma once

#include <string_view>

// Which worker gets a signal before its process group does. A worker that handles a signal has something to do before
// it ends, such as a checkpoint, for which it may need its helpers: a data loader that dies makes PyTorch's loop fail.
// So the worker gets the signal alone, and its group gets it when the worker has ended.
namespace elastic::process {

// Whether a worker may get this signal alone: one that asks for the end, or that a user has chosen. SIGINT is none,
// since a terminal sends it to whole groups, too; nor is SIGABRT, by which a worker that hangs is to tell its stack.
bool may_go_alone(int signal_number);

// What a process does with a signal.
enum class Handles {
  kNo,       // it ignores it, or is stopped
  kYes,      // it catches or blocks it
  kUnknown,  // it dies of it at once, unless it awaits it (sigwait), which the kernel does not show
};
// By the text of /proc/PID/status; kNo where it cannot be read.
Handles handles(int signal_number, std::string_view status);
// Whether the program of this path is a shell, which hands no signal on to what it waits for.
bool is_shell(std::string_view executable);

}  // namespace elastic::process
