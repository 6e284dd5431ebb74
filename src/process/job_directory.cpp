#include "src/process/job_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/children.h"

namespace elastic::process {
namespace {

void remove_files(const std::string& path) {
  if (DIR* directory = opendir(path.c_str())) {
    while (const dirent* entry = readdir(directory)) unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
  }
  rmdir(path.c_str());
}

}  // namespace

Result<std::string> make_job_directory(const std::string& parent) {
  std::string path = parent + "/elastic_run_XXXXXX";
  if (mkdtemp(path.data()) != nullptr) return path;
  return fail_errno(format("cannot make a directory in {}", printable(parent)), errno);
}

void remove_job_directory(const std::string& path, std::int64_t patience_ms) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return remove_files(path);
  UniqueFd ended(ends[0]);  // is at its end when the child has exited
  UniqueFd childs(ends[1]);
  const auto child = fork_child([&path] {
    remove_files(path);
    return 0;
  });
  if (!child) return remove_files(path);
  childs = UniqueFd();
  pollfd watched{ended.get(), POLLIN, 0};
  while (poll(&watched, 1, static_cast<int>(patience_ms)) < 0 && errno == EINTR) {
  }
  if (watched.revents != 0) {
    wait_for_child(*child);
  } else {
    reap_child(*child);
  }
}

}  // namespace elastic::process
