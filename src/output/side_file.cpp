#include "src/output/side_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "src/base/unique_fd.h"

namespace elastic::output {
namespace {

// How long opening the file may take, and at the end writing a piece.
constexpr std::int64_t kOpenMs = 2000;
constexpr std::int64_t kFinishMs = 1200;
// The most bytes of one write(), so that a slow file is not taken for one that hangs.
constexpr std::size_t kPieceBytes = 256 * 1024;

}  // namespace

struct SideFile::State {
  Options options;
  UniqueFd file;         // used by the thread only
  bool is_torn = false;  // used by the thread only: a line has been written in part
  std::mutex mutex;
  std::string waiting;
  bool is_writing = false;  // the thread has a job that writes `waiting`
  int error = 0;            // the first
  std::uint64_t lost = 0;   // lost lines that no loss_line has counted yet

  // Takes what is to be written next; empty if nothing is.
  std::string next_piece() {
    const std::lock_guard lock(mutex);
    if (!file || (error != 0 && !options.loss_line)) waiting.clear();
    std::size_t size = std::min(waiting.size(), kPieceBytes);
    if (options.loss_line && size > 0) size = waiting.find('\n') + 1;
    std::string piece = waiting.substr(0, size);
    waiting.erase(0, size);
    if (piece.empty()) is_writing = false;
    return piece;
  }

  bool write_piece(std::string_view left) {
    const std::size_t whole = left.size();
    while (!left.empty()) {
      const ssize_t count = ::write(file.get(), left.data(), left.size());
      if (count > 0) {
        left.remove_prefix(static_cast<std::size_t>(count));
      } else if (count < 0 && errno != EINTR) {
        const std::lock_guard lock(mutex);
        if (error == 0) error = errno;
        is_torn = is_torn || left.size() < whole;
        return false;
      }
    }
    return true;
  }

  // Runs on the thread until nothing waits.
  void write_all() {
    for (std::string piece = next_piece(); !piece.empty(); piece = next_piece()) {
      if (!options.loss_line) {
        write_piece(piece);
      } else if (!tell_losses() || !write_line(piece)) {
        const std::lock_guard lock(mutex);
        ++lost;
      }
    }
  }

  bool write_line(const std::string& line) {
    // A line that was written in part gets a line end.
    if (!write_piece(is_torn ? "\n" + line : line)) return false;
    is_torn = false;
    return true;
  }

  bool tell_losses() {
    std::uint64_t count = 0;
    {
      const std::lock_guard lock(mutex);
      count = lost;
    }
    if (count == 0) return true;
    if (!write_line(options.loss_line(count))) return false;
    const std::lock_guard lock(mutex);
    lost -= count;
    return true;
  }
};

SideFile::SideFile(std::string path, Options options) : path_(std::move(path)), state_(std::make_shared<State>()) {
  state_->options = std::move(options);
}

SideFile::Opened SideFile::open() {
  thread_.post(path_, [state = state_, path = path_] {
    const int how = state->options.appends ? O_APPEND : O_TRUNC;
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | how, 0666));
    const int error = file ? 0 : errno;
    const std::lock_guard lock(state->mutex);
    state->file = std::move(file);
    state->error = error;
  });
  if (!thread_.wait(kOpenMs)) return Opened::kHangs;
  return state_->error == 0 ? Opened::kOpen : Opened::kFailed;
}

int SideFile::error() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

bool SideFile::append(std::string_view lines) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->waiting.size() + lines.size() > state_->options.waiting_bytes) {
      state_->lost += static_cast<std::uint64_t>(std::ranges::count(lines, '\n'));
      return false;
    }
    state_->waiting += lines;
    if (std::exchange(state_->is_writing, true)) return true;
  }
  thread_.post(path_, [state = state_] { state->write_all(); });
  return true;
}

bool SideFile::finish() {
  const auto waiting = [this] {
    const std::lock_guard lock(state_->mutex);
    return state_->waiting.size();
  };
  std::size_t left = waiting();
  while (!thread_.wait(kFinishMs)) {
    const std::size_t before = std::exchange(left, waiting());
    if (left == before) return false;
  }
  return true;
}

}  // namespace elastic::output
