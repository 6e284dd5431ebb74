#include "src/base/console.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace elastic {
namespace {

constexpr int kPatienceMs = 200;
// A pipe that poll() reports as writable takes this many bytes without blocking.
constexpr std::size_t kPieceBytes = 4096;

}  // namespace

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    pollfd console{STDERR_FILENO, POLLOUT, 0};
    const int ready = poll(&console, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    const ssize_t count = write(STDERR_FILENO, text.data(), text.size() < kPieceBytes ? text.size() : kPieceBytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace elastic
