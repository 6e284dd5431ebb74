#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace elastic::process {

// A process as /proc shows it.
struct ProcessFacts {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t started = 0;  // in clock ticks after boot: with the pid it names one process for ever
  char state = '?';           // as in ps: R, S, D (uninterruptible), T (stopped), Z (zombie), ...
  std::string name;           // comm
  std::string waiting;        // the kernel function it waits in; empty if unknown
};

// Reads what /proc says of one process. The state is '?' if the process is gone or /proc is not mounted.
ProcessFacts process_facts(pid_t pid);

// The arguments of a process with blanks between, as ps shows them, at most a page of them; empty if they cannot be
// read.
std::string command_line(pid_t pid);

// /proc/PID/status and the path of /proc/PID/exe; empty if they cannot be read.
std::string status_text(pid_t pid);
std::string executable_of(pid_t pid);

// "process 4711 (python, state D, in fuse_wait)", for messages.
std::string describe(const ProcessFacts& facts);

// Sends a signal to the very process that was found, never to one that has got its pid since (but for an
// instant where the kernel has no pidfd_open, before Linux 5.3).
void signal_process(const ProcessFacts& found, int signal_number);
// The same with SIGKILL.
void kill_process(const ProcessFacts& found);

// False where /proc is not mounted: then no process's descendants can be found.
bool processes_can_be_seen();

// True for a process that has this ancestor, a zombie too. False where there is no /proc, or it does not show them.
bool is_descendant(pid_t process, pid_t ancestor);

// All living descendants of a process, zombies left out. As this process and the guardian are
// subreapers, whatever a worker has forked is found here, in whatever session or group it is. Empty
// where there is no /proc.
std::vector<ProcessFacts> descendants_of(pid_t ancestor);

}  // namespace elastic::process
