#include "cli/run/fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "src/base/text.h"

namespace elastic::run {
namespace {

// The size of a FIFO, as the system makes it.
std::array<char, 64 * 1024> bytes_buffer;
constexpr ssize_t kFloodBytes = 16 * 1024;
constexpr std::int64_t kPauseMs = 50;
// Reads that take what the largest FIFO holds: 1 MiB, unless an administrator allows more.
constexpr int kReadsOfAll = 17;

ssize_t read_bytes(const UniqueFd& descriptor) {
  return read(descriptor.get(), bytes_buffer.data(), bytes_buffer.size());
}

}  // namespace

Fifo::Fifo(net::Loop& loop, OnBytes on_bytes) : loop_(loop), on_bytes_(std::move(on_bytes)), pause_(loop) {}

Status Fifo::make(const std::string& path, int bytes) {
  const bool is_made = mkfifo(path.c_str(), 0600) == 0;
  descriptor_ = UniqueFd(is_made ? open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1);
  if (!descriptor_) return fail_errno(format("cannot make {}", printable(path)), errno);
  if (bytes > 0) (void)fcntl(descriptor_.get(), F_SETPIPE_SZ, bytes);
  watch();
  return {};
}

bool Fifo::is_at(const std::string& path) const {
  struct stat own {};
  struct stat there {};
  if (!descriptor_ || fstat(descriptor_.get(), &own) != 0 || lstat(path.c_str(), &there) != 0) return false;
  return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

void Fifo::read_all() {
  if (!descriptor_) return;
  for (int i = 0; i < kReadsOfAll; ++i) {
    const ssize_t count = read_bytes(descriptor_);
    if (count <= 0) return;
    on_bytes_({bytes_buffer.data(), static_cast<std::size_t>(count)});
  }
}

void Fifo::empty() {
  if (!descriptor_) return;
  // A process that is left from the last round may be writing: there is an end to it.
  for (int i = 0; i < kReadsOfAll && read_bytes(descriptor_) > 0; ++i) continue;
}

void Fifo::watch() {
  watch_.emplace(loop_, descriptor_.get(), [this] { readable(); });
}

void Fifo::readable() {
  const ssize_t count = read_bytes(descriptor_);
  if (count <= 0) return;
  on_bytes_({bytes_buffer.data(), static_cast<std::size_t>(count)});
  if (count < kFloodBytes) return;
  watch_.reset();
  pause_.start(kPauseMs, [this] { watch(); });
}

}  // namespace elastic::run
