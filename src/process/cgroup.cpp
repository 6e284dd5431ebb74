#include "src/process/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "src/base/text.h"
#include "src/process/cgroup_place.h"

namespace elastic::process {
namespace {

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

}  // namespace

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

}  // namespace elastic::process
