#pragma once

#include <memory>
#include <string>

#include "src/base/unique_fd.h"

namespace elastic::process {

// A cgroup (version 2) of our own, for the workers and all that they fork: it can be killed whole,
// double forks in other sessions included.
class Cgroup {
 public:
  // Makes one below the cgroup of this process, where that is delegated to us: it can be written, and
  // this process is not root, or is at the root of its cgroup namespace (a container), or the
  // delegation is marked as systemd marks it. Null elsewhere, and where the kernel has no cgroup.kill
  // (before 5.14). Whoever ends last removes its directory (rmdir).
  static std::unique_ptr<Cgroup> make();
  // The directory, open: clone3 makes a child in it.
  int descriptor() const { return directory_.get(); }
  // Open for writing: a process that writes "0" to it moves itself into the cgroup.
  int procs_descriptor() const { return procs_.get(); }
  // Writing "1" to this file kills all in it.
  const std::string& kill_file() const { return kill_file_; }
  const std::string& path() const { return path_; }

 private:
  Cgroup(std::string path, UniqueFd directory, UniqueFd procs);

  std::string path_;
  std::string kill_file_;
  UniqueFd directory_;
  UniqueFd procs_;
};

}  // namespace elastic::process
