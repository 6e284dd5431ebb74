#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace elastic::process {

// What elastic-run itself was given by whoever started it and then changed for its own work. Every
// child gets it back as it was.
struct InheritedState {
  sigset_t signal_mask{};
  struct sigaction child_action {};  // SIGCHLD: a parent may have left it ignored
  rlimit open_files{};

  // To be called before anything is changed.
  static InheritedState capture();
};

// Where a worker finds the gate at which it waits for the others (end_gate.h).
inline constexpr int kEndGate = 3;

// One program to start.
struct Command {
  std::string path;                    // the file to execute, already looked up
  std::vector<std::string> arguments;  // argv, the program's name first; any bytes but NUL
  // NAME=value. What all workers have, which must live as long as the call, and what this one has besides;
  // no name is in both.
  std::span<const std::string> environment;
  std::vector<std::string> variables;
  // What it has for stdout and stderr, open until spawn() returns; -1: ours.
  int standard_output = -1;
  int standard_error = -1;
  // What it has as descriptor kEndGate, open until spawn() returns; -1: nothing.
  int end_gate = -1;
};

// What all children of the launcher have in common.
struct SpawnContext {
  InheritedState inherited;
  int guardian = -1;  // the channel over which a child makes itself known before it executes
  int cgroup = -1;    // the workers' cgroup: its directory, into which a child is born,
  // False: it moves there itself. After a first cgroup.kill the kernel (seen with 6.18) kills whatever
  // clone3 makes in that cgroup.
  bool born_in_cgroup = true;
  int cgroup_procs = -1;  // and its cgroup.procs, by which one moves itself where that cannot be had
};

// Starts a program in a new session (so that session, process group and pid are one number), with the
// inherited state given back, SIGPIPE default, stdin, working directory and umask as ours, and no
// descriptor open but those of the command. It is killed with SIGKILL when the calling thread ends. Returns its pid
// when the program runs, for the caller to reap; fails with the system's reason when it cannot be started or executed.
Result<pid_t> spawn(const Command& command, const SpawnContext& context);

// Becomes the program of that file, with the inherited signal mask given back; nothing else may have been changed.
// Returns only where it cannot be executed, and says why. `arguments`: argv.
Error become_program(const std::string& path, std::span<const std::string> arguments,
                     std::span<const std::string> environment, const InheritedState& inherited);

}  // namespace elastic::process
