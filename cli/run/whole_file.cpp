#include "cli/run/whole_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>

#include "src/base/unique_fd.h"
#include "src/output/write_all.h"

namespace elastic::run {

int replace_file(const std::string& path, std::string_view text) {
  const std::string unfinished = path + ".new";
  const UniqueFd file(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return errno;
  const int error = output::write_all(file.get(), text);
  if (error != 0 || rename(unfinished.c_str(), path.c_str()) == 0) return error;
  return errno;
}

}  // namespace elastic::run
