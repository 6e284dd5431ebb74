#include "cli/run/file_part.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/unique_fd.h"

namespace elastic::run {

std::optional<std::string> read_part(const std::string& path, off_t offset, std::size_t bytes) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return {};
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t count = pread(file.get(), text.data() + have, bytes - have, offset + static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  text.resize(have);
  return text;
}

}  // namespace elastic::run
