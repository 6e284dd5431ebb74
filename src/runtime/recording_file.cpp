#include "src/runtime/recording_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace elastic::runtime {
namespace {

// How long the file may take to be made, and at the end a piece of it to be written.
constexpr std::int64_t kOpenMs = 2000;
constexpr std::int64_t kFinishMs = 1200;
// Written at once at most, so that a slow file is not taken for one that hangs.
constexpr std::size_t kPieceBytes = 256 * 1024;

}  // namespace

struct RecordingFile::State {
  UniqueFd file;  // the thread's alone
  std::mutex mutex;
  std::string waiting;
  bool is_writing = false;  // the thread has been told of what waits
  int error = 0;

  // On the thread, until nothing waits.
  void write_all() {
    for (;;) {
      std::string piece;
      {
        const std::lock_guard lock(mutex);
        if (error != 0) waiting.clear();
        piece = waiting.substr(0, kPieceBytes);
        waiting.erase(0, piece.size());
        if (piece.empty()) {
          is_writing = false;
          return;
        }
      }
      int failed = 0;
      for (std::string_view left = piece; !left.empty() && failed == 0;) {
        const ssize_t count = ::write(file.get(), left.data(), left.size());
        if (count > 0) {
          left.remove_prefix(static_cast<std::size_t>(count));
        } else if (count < 0 && errno != EINTR) {
          failed = errno;
        }
      }
      const std::lock_guard lock(mutex);
      if (failed != 0) error = failed;
    }
  }
};

RecordingFile::RecordingFile(std::string path) : path_(std::move(path)), state_(std::make_shared<State>()) {}
RecordingFile::~RecordingFile() = default;

Result<std::unique_ptr<RecordingFile>> RecordingFile::open(const std::string& path) {
  std::unique_ptr<RecordingFile> made(new RecordingFile(path));
  made->thread_.post(path, [state = made->state_, path] {
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
    const int error = file ? 0 : errno;
    const std::lock_guard lock(state->mutex);
    state->file = std::move(file);
    state->error = error;
  });
  if (!made->thread_.wait(kOpenMs)) {
    made->give_up("it does not answer");
  } else if (made->state_->error != 0) {
    return fail_errno(format("--record={}", printable(path)), made->state_->error, "name a file that can be written");
  }
  return made;
}

void RecordingFile::give_up(const std::string& reason) {
  if (given_up_) return;
  given_up_ = true;
  log::warning("no_recording",
               format("--record={}: {}; going on without the recording", printable(path_), reason));
}

void RecordingFile::append(std::string_view lines) {
  if (given_up_) return;
  std::unique_lock lock(state_->mutex);
  if (state_->error != 0) {
    const int error = state_->error;
    lock.unlock();
    return give_up(errno_text(error));
  }
  if (state_->waiting.size() + lines.size() > limits::kRecordingWaitingBytes) {
    lock.unlock();
    return give_up(format("it takes nothing, and {} bytes wait for it", limits::kRecordingWaitingBytes));
  }
  state_->waiting += lines;
  if (std::exchange(state_->is_writing, true)) return;
  lock.unlock();
  thread_.post(path_, [state = state_] { state->write_all(); });
}

bool RecordingFile::finish() {
  if (given_up_) return thread_.wait(0);
  const auto waiting = [this] {
    const std::lock_guard lock(state_->mutex);
    return state_->waiting.size();
  };
  std::size_t left = waiting();
  while (!thread_.wait(kFinishMs)) {
    const std::size_t before = std::exchange(left, waiting());
    if (left != before) continue;
    give_up("it does not answer");
    return false;
  }
  if (state_->error != 0) give_up(errno_text(state_->error));
  return true;
}

}  // namespace elastic::runtime
