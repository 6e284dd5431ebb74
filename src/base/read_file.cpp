#include "src/base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/unique_fd.h"

namespace elastic {
namespace {

constexpr std::size_t kFirstBytes = 4096;  // a file of /proc mostly has less

}  // namespace

std::expected<std::string, int> read_file(const std::string& path, std::size_t most, off_t offset) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file || (offset != 0 && lseek(file.get(), offset, SEEK_SET) < 0)) return std::unexpected(errno);
  std::string text;
  std::size_t size = 0;
  while (size < most) {
    if (size == text.size()) text.resize(std::min(most, std::max(kFirstBytes, 2 * size)));
    const ssize_t count = read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace elastic
