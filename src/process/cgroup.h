#pragma once

#include <memory>
#include <string>

#include "src/base/unique_fd.h"

namespace elastic::process {

// A cgroup (version 2) that elastic-run makes for the workers and all that they fork. The kernel can kill the whole
// cgroup, daemons that have left their worker's session included.
class Cgroup {
 public:
  // Makes a cgroup below that of this process, where that is delegated to us: it can be written, and
  // this process is not root, or is at the root of its cgroup namespace (a container), or the
  // delegation is marked as systemd marks it. Returns null elsewhere, and where the kernel has no cgroup.kill
  // (before 5.14). The process that ends last removes the directory (rmdir).
  static std::unique_ptr<Cgroup> make();
  // The open directory, in which clone3 makes a child.
  int descriptor() const { return directory_.get(); }
  // cgroup.procs, open for writing: a process that writes "0" to it moves itself into the cgroup.
  int procs_descriptor() const { return procs_.get(); }
  const std::string& path() const { return path_; }

 private:
  Cgroup(std::string path, UniqueFd directory, UniqueFd procs);

  std::string path_;
  UniqueFd directory_;
  UniqueFd procs_;
};

}  // namespace elastic::process
