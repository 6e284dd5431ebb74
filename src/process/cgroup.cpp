#include "src/process/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

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

constexpr std::string_view kPrefix = "elastic-run-";
// A launch looks at no more cgroups than this, so that a thousand launches at once do not read a million directories.
constexpr int kStaleLooks = 32;

bool is_delegated(const std::string& directory, const std::string& whole_path) {
  if (geteuid() != 0 || whole_path == "/") return true;
  char mark = 0;
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    if (getxattr(directory.c_str(), name, &mark, 1) == 1 && mark == '1') return true;
  }
  return false;
}

// Removes the cgroups of launches of which both processes were killed at once: the name of such a cgroup has the pid of
// a process that does not exist. The kernel removes a cgroup only if no process is in it.
void remove_stale(const std::string& directory) {
  std::error_code error;
  int looked_at = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    if (++looked_at > kStaleLooks) return;
    const auto pid = parse_int(std::string_view(name).substr(kPrefix.size()));
    if (!pid || (kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH)) rmdir(entry.path().c_str());
  }
}

// The words of a small file, which are numbers or "max"; "-1" and "max" are no limit.
std::optional<std::int64_t> next_count(std::ifstream& file) {
  std::string word;
  file >> word;
  const auto number = parse_int(word);
  return number && *number > 0 ? number : std::nullopt;
}

class Least {
 public:
  void take(std::optional<std::int64_t> quota_us, std::optional<std::int64_t> period_us) {
    if (!quota_us || !period_us) return;
    const double cpus = static_cast<double>(*quota_us) / static_cast<double>(*period_us);
    cpus_ = std::min(cpus, cpus_.value_or(cpus));
  }
  std::optional<double> cpus() const { return cpus_; }

 private:
  std::optional<double> cpus_;
};

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

std::unique_ptr<Cgroup> Cgroup::make() {
  const auto place = own_cgroup_place();
  if (!place || !is_delegated(place->directory(), place->whole_path)) return nullptr;
  remove_stale(place->directory());
  const std::string ours = format("{}/{}{}", place->directory(), kPrefix, getpid());
  rmdir(ours.c_str());  // left by an earlier process with our pid
  if (mkdir(ours.c_str(), 0755) != 0) return nullptr;
  UniqueFd procs(open((ours + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  UniqueFd opened(open(ours.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool can_kill = access((ours + "/cgroup.kill").c_str(), W_OK) == 0;
  if (!procs || !opened || !can_kill) {
    rmdir(ours.c_str());
    return nullptr;
  }
  return std::unique_ptr<Cgroup>(new Cgroup(ours, std::move(opened), std::move(procs)));
}

Cgroup::Cgroup(std::string path, UniqueFd directory, UniqueFd procs)
    : path_(std::move(path)), directory_(std::move(directory)), procs_(std::move(procs)) {}

std::optional<double> cpu_quota(const std::string& root) {
  Least least;
  for (const std::string& level : own_cgroup_levels({}, root)) {
    std::ifstream allowed(level + "/cpu.max");  // "150000 100000", "max 100000"
    const auto quota_us = next_count(allowed);
    least.take(quota_us, next_count(allowed));
  }
  for (const std::string& level : own_cgroup_levels("cpu", root)) {
    std::ifstream quota(level + "/cpu.cfs_quota_us");
    std::ifstream period(level + "/cpu.cfs_period_us");
    least.take(next_count(quota), next_count(period));
  }
  return least.cpus();
}

}  // namespace elastic::process
