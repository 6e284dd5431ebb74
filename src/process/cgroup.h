#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/unique_fd.h"

namespace elastic::process {

// Where this process's cgroup is.
struct CgroupPlace {
  std::string mount_point;  // of the hierarchy
  std::string path;         // below it; empty, or with a '/' at its beginning
  std::string whole_path;   // from the root of the hierarchy, of which a container may see only a part

  std::string directory() const { return mount_point + path; }
};

// Finds our cgroup in the hierarchy of version 2, or in that of a version 1 controller ("memory"). Returns nothing
// where that is not mounted, or its mount does not reach our cgroup. Files are looked for below `root`, "/" but for
// tests.
std::optional<CgroupPlace> own_cgroup_place(std::string_view controller_v1 = {}, const std::string& root = "/");

// The directories of that cgroup and of those above it, as far as they can be seen, at most 64.
std::vector<std::string> own_cgroup_levels(std::string_view controller_v1 = {}, const std::string& root = "/");

// The file that `path`, which is absolute, names below that root.
std::string path_in(const std::string& root, std::string_view path);

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

// The number of CPUs whose time our cgroup may use, by version 2 (cpu.max) or 1 (cpu.cfs_quota_us): the smallest limit
// among our cgroup and those above it. None where no level is limited. Files are looked for below `root`, "/" but for
// tests.
std::optional<double> cpu_quota(const std::string& root = "/");

}  // namespace elastic::process
