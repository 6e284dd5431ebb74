#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace elastic::process
