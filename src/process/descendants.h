#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace elastic::process {

// A process as /proc shows it.
struct ProcessFacts {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';     // as in ps: R, S, D (uninterruptible), T (stopped), Z (zombie), ...
  std::string name;     // comm
  std::string waiting;  // the kernel function it waits in; empty if unknown
};

// What /proc says of one process; a state of '?' if it is gone or /proc is not there.
ProcessFacts process_facts(pid_t pid);

// "process 4711 (python, state D, in fuse_wait)", for messages.
std::string describe(const ProcessFacts& facts);

// All living descendants of a process, zombies left out. As this process and the guardian are
// subreapers, whatever a worker has forked is found here, in whatever session or group it is. Empty
// where there is no /proc.
std::vector<ProcessFacts> descendants_of(pid_t ancestor);

}  // namespace elastic::process
