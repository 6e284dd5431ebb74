#include "src/process/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

#include "src/base/text.h"

namespace elastic::process {
namespace {

constexpr std::string_view kPrefix = "elastic-run-";

// The path of this process in the version 2 hierarchy: the line "0::<path>".
std::optional<std::string> own_path() {
  std::ifstream file("/proc/self/cgroup");
  constexpr std::string_view kVersion2 = "0::";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kVersion2)) return line.substr(kVersion2.size());
  }
  return {};
}

// Where a cgroup's directory is: the mount point of the hierarchy, and the path below the part of the
// hierarchy that is mounted there. mountinfo: "id parent dev root mount-point options ... - type ...".
std::optional<std::string> directory_of(const std::string& path) {
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() < 5) continue;
    const std::string& root = fields[3];
    if (root == "/") return fields[4] + path;
    if (path.starts_with(root)) return fields[4] + path.substr(root.size());
  }
  return {};
}

bool is_delegated(const std::string& directory, const std::string& path) {
  if (geteuid() != 0 || path == "/") return true;
  char mark = 0;
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    if (getxattr(directory.c_str(), name, &mark, 1) == 1 && mark == '1') return true;
  }
  return false;
}

// What an elastic-run left of which both processes were killed at once: it bears the pid of one that is
// no more. The kernel removes a cgroup only if nobody is in it.
void remove_stale(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const auto pid = parse_int(std::string_view(name).substr(kPrefix.size()));
    if (!pid || *pid == getpid() || (kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH)) {
      rmdir(entry.path().c_str());
    }
  }
}

}  // namespace

std::unique_ptr<Cgroup> Cgroup::make() {
  const auto path = own_path();
  if (!path) return nullptr;
  auto directory = directory_of(*path);
  if (!directory || !is_delegated(*directory, *path)) return nullptr;
  remove_stale(*directory);
  const std::string ours = format("{}{}{}{}", *directory, directory->ends_with('/') ? "" : "/", kPrefix, getpid());
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
    : path_(std::move(path)),
      kill_file_(path_ + "/cgroup.kill"),
      directory_(std::move(directory)),
      procs_(std::move(procs)) {}

}  // namespace elastic::process
