#pragma once

#include <string_view>

// Which worker gets a signal before its process group does. A worker that handles a signal has something to do before
// it ends, such as a checkpoint, for which it may need its helpers: a data loader that dies makes PyTorch's loop fail.
// So the worker gets the signal alone, and its group gets it when the worker has ended.
namespace elastic::process {

// Whether that may be so with this signal: one that asks for the end, or that a user has chosen. SIGINT is none, since
// a terminal sends it to whole groups, too; nor is SIGABRT, by which a worker that hangs is to tell its stack.
bool may_go_alone(int signal_number);

// What a worker does with signals, as /proc shows it. Empty texts: it does not.
struct SignalManners {
  std::string_view status;      // of /proc/PID/status
  std::string_view executable;  // the path of /proc/PID/exe
  std::string_view waiting;     // the kernel function of /proc/PID/wchan; empty while it runs
};

// Whether a worker handles a signal itself: it catches, blocks or awaits it, and its program is no shell. A shell does
// not pass a signal on to what it waits for. While a process awaits signals (sigwait) the kernel does not show which;
// one that awaits others dies of this one at once. Of one that only just begins to wait the kernel shows nothing: it
// seems to run. So what one that runs does is unknown, but that it dies of the signal at once if it does not await it.
enum class Handles { kNo, kYes, kUnknown };
Handles handles(int signal_number, const SignalManners& worker);

}  // namespace elastic::process
