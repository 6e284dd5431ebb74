#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/unique_fd.h"

namespace elastic::process {

// The process state that elastic-run inherited and then changed for its own work. Every child gets it back as it was.
struct InheritedState {
  sigset_t signal_mask{};
  struct sigaction child_action {};  // SIGCHLD: a parent may have left it ignored
  rlimit open_files{};

  // Must be called before any of it is changed.
  static InheritedState capture();
};

// The descriptor at which a child finds what it may be given besides stdin, stdout and stderr: a worker the worker
// barrier's socket (tree.h), the import server its socket (src/warm).
inline constexpr int kChannel = 3;

// Where a program may run and where its memory comes from, as the kernel takes it: bit n of all words, in order, is CPU
// or NUMA node n.
struct Binding {
  std::vector<unsigned long> cpus = {};   // empty: those that we have
  int memory_policy = 0;                  // of set_mempolicy(): MPOL_BIND, MPOL_PREFERRED
  std::vector<unsigned long> nodes = {};  // empty: the policy that we have
};

// What of a Binding the kernel has refused: errno values; 0: nothing.
struct BindingRefusal {
  int cpus = 0;
  int memory = 0;
};

struct Command {
  std::string path;                    // the file to execute, already looked up
  std::vector<std::string> arguments;  // argv, the program's name first; any bytes but NUL
  // NAME=value strings. `environment` is what all workers have, and must live until spawn() returns; `variables` is
  // what this one has besides. No name is in both.
  std::span<const std::string> environment;
  std::vector<std::string> variables;
  // Its stdout and stderr, which must be open until spawn() returns; -1: ours.
  int standard_output = -1;
  int standard_error = -1;
  // Its descriptor kChannel, which must be open until spawn() returns; -1: none.
  int channel = -1;
  // Must live until spawn() returns; null: it runs where we do.
  const Binding* binding = nullptr;
};

// Settings that all children of the launcher share.
struct SpawnContext {
  InheritedState inherited;
  int guardian = -1;  // the channel over which a child introduces itself before it executes its program
  int cgroup = -1;    // the workers' cgroup: its directory, into which a child is born,
  // False: the child moves there itself. After a first cgroup.kill the kernel (seen with 6.18) kills every process
  // that clone3 makes in that cgroup.
  bool born_in_cgroup = true;
  int cgroup_procs = -1;  // its cgroup.procs, by which a child moves itself where it is not born there
};

// Starts a program in a new session (so that session, process group and pid are one number). It has the
// inherited state, the default action for SIGPIPE, our stdin, working directory and umask, and no
// descriptors but those of the command. It is killed by SIGKILL when the calling thread ends. Returns its pid once the
// program runs; the caller reaps it. Fails with the system's reason when it cannot be started or executed. A program
// whose binding the kernel refuses runs without it; `refusal`, if it is not null, is told.
Result<pid_t> spawn(const Command& command, const SpawnContext& context, BindingRefusal* refusal = nullptr);

// Executes the program of that file in this process, with the inherited signal mask; nothing else may have been
// changed. Returns only where it cannot be executed, with the reason. `arguments`: argv.
Error become_program(const std::string& path, std::span<const std::string> arguments,
                     std::span<const std::string> environment, const InheritedState& inherited);

// Hands descriptors to a child through a socket. A child that has a copied descriptor table would have a copy of every
// descriptor below it, too, and would have to close those.
class HandOver {
 public:
  // Fails where no socket can be made.
  static Result<HandOver> make();

  // Sends a descriptor. The caller keeps it, and must not close it before the child has received it. At most two.
  Status put(int descriptor) const;

  // The socket from which the child receives them.
  int out() const { return out_.get(); }

 private:
  HandOver(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}

  UniqueFd in_;
  UniqueFd out_;
};

// Receives the next descriptor as the number `target`: a descriptor that has this number is closed, and all lower
// numbers must be in use, so that no second copy has to be closed. Returns an errno, or 0. Makes only system calls: for
// a child between vfork and exec that has a descriptor table of its own.
int take_descriptor(int out, int target);

// Closes every descriptor from `first` on. A child may call it between vfork and exec: it makes only system calls, and
// uses only the stack. All descriptors lie below `limit`, as far as is known; it is needed only where the kernel
// has no close_range (before Linux 5.9) and there is no /proc either.
void close_descriptors_from(int first, rlim_t limit);

}  // namespace elastic::process
