#include "src/process/process_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/text.h"

namespace elastic::process {
namespace {

// | open descriptors | the hard limit of `ulimit -n`, to which elastic-run raises its own (workers get the soft one
// back). It needs {kLauncherDescriptors} for the launcher (connections to the store not counted), 2 for its thread of
// files (5 more with file timers) and, for each worker, one for the store, one for its `ELASTIC_RUN_PROGRESS`, one for
// each log file and one for each stream that the launcher reads (4 with `-t 3`) | fewer are refused at the start, exit
// status 1; a connection to the store for which none is left is closed, with one warning |
constexpr int kLauncherDescriptors = 24;

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
  const auto needed = static_cast<rlim_t>(first_free + kLauncherDescriptors + descriptors);
  if (first_free >= 0 && files.rlim_cur >= needed) return {};
  return fail(format("the limit of open files is {}", files.rlim_cur),
              format("{} needs {}, and one more for each connection to the worker store", input, needed),
              "raise it (ulimit -Hn)");
}

}  // namespace elastic::process
