#include "src/process/cgroup_place.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "src/base/text.h"

namespace elastic::process {
namespace {

constexpr std::size_t kLevels = 64;

// The path of this process in a hierarchy: /proc/self/cgroup has "id:controllers:path", of version 2
// "0::path".
std::optional<std::string> own_path(std::string_view controller, const std::string& root) {
  std::ifstream file(path_in(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool found =
        controller.empty() ? line.starts_with("0::") : std::ranges::count(split(controllers, ','), controller) > 0;
    if (found) return line.substr(second + 1);
  }
  return {};
}

struct Mount {
  std::string point;
  std::string root;  // the part of the hierarchy that is mounted there
};

// mountinfo: "id parent dev root point options ... - type source superoptions".
std::optional<Mount> hierarchy_mount(std::string_view controller, const std::string& root) {
  std::ifstream file(path_in(root, "/proc/self/mountinfo"));
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> fields = split(line, ' ');
    const std::vector<std::string> kind = split(line.substr(dash + 3), ' ');
    if (fields.size() < 5 || kind.size() < 3) continue;
    const bool found = controller.empty()
                           ? kind[0] == "cgroup2"
                           : kind[0] == "cgroup" && std::ranges::count(split(kind[2], ','), controller) > 0;
    if (found) return Mount{fields[4], fields[3]};
  }
  return {};
}

}  // namespace

std::string path_in(const std::string& root, std::string_view path) {
  std::string out = root;
  if (out.ends_with('/') && path.starts_with('/')) out.pop_back();
  out += path;
  return out;
}

std::optional<CgroupPlace> own_cgroup_place(std::string_view controller_v1, const std::string& root) {
  const std::optional<std::string> whole = own_path(controller_v1, root);
  const std::optional<Mount> mount = hierarchy_mount(controller_v1, root);
  if (!whole || !mount) return {};
  std::string path = *whole;
  if (mount->root != "/") {
    if (!(path + "/").starts_with(mount->root + "/")) return {};
    path.erase(0, mount->root.size());
  }
  if (path == "/") path.clear();
  return CgroupPlace{path_in(root, mount->point), std::move(path), *whole};
}

std::vector<std::string> own_cgroup_levels(std::string_view controller_v1, const std::string& root) {
  std::vector<std::string> levels;
  auto place = own_cgroup_place(controller_v1, root);
  while (place && levels.size() < kLevels) {
    levels.push_back(place->directory());
    if (place->path.empty()) break;
    place->path.erase(std::min(place->path.rfind('/'), place->path.size()));
  }
  return levels;
}

}  // namespace elastic::process
