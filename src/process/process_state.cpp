#include "src/process/process_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/text.h"
#include "src/process/limits.h"

namespace elastic::process {
namespace {

// Opens the standard streams that were closed when we were started, so that no file of ours gets their numbers.
// Returns the lowest number that is free then.
int fill_standard_streams() {
  // Without /dev there is still "/", opened as a path only: reading or writing it fails as on a closed descriptor.
  const auto anything = [] {
    const int fd = open("/dev/null", O_RDWR);
    return fd >= 0 ? fd : open("/", O_PATH);
  };
  int fd = anything();
  while (fd >= 0 && fd <= STDERR_FILENO) fd = anything();
  if (fd >= 0) close(fd);
  return fd;
}

}  // namespace

Status prepare_process(const std::string& input, int descriptors) {
  const int first_free = fill_standard_streams();
  // A console that has gone away is an error of that write, not the end of the launcher.
  signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  if (files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const auto needed = static_cast<rlim_t>(first_free + limits::kLauncherDescriptors + descriptors);
  if (first_free >= 0 && files.rlim_cur >= needed) return {};
  return fail(format("the limit of open files is {}", files.rlim_cur),
              format("{} needs {}, and one more for each connection to the worker store", input, needed),
              "raise it (ulimit -Hn)");
}

}  // namespace elastic::process
