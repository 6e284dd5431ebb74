#include "src/output/log_file.h"

#include <algorithm>
#include <utility>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/output/write_all.h"

namespace elastic::output {

// What one job writes: a file system that is only slow must be seen to get on.
constexpr std::size_t kJobBytes = 256 * 1024;

// What the thread writes may outlive the LogFile. While it writes, `batch`, `error` and `file` are the thread's.
struct LogFile::State {
  net::SideThread& thread;
  std::string path;
  UniqueFd file;
  Handlers handlers;  // no on_room once the LogFile has gone
  std::string waiting;
  std::string batch;
  std::size_t written = 0;  // of the batch
  int error = 0;
  bool writing = false;
  bool lost = false;
  bool released = false;  // the LogFile has gone
};

void close_later(net::SideThread& thread, const std::string& path, UniqueFd file) {
  if (!file) return;
  const auto last = std::make_shared<UniqueFd>(std::move(file));
  thread.post(path, [last] { *last = UniqueFd(); });
}

LogFile::LogFile(net::SideThread& thread, std::string path, UniqueFd file, Handlers handlers)
    : state_(new State{thread, std::move(path), std::move(file), std::move(handlers), {}, {}}) {}

LogFile::~LogFile() {
  state_->handlers.on_room = {};  // whom that concerns may be gone before what waits is written
  state_->released = true;
  if (!state_->writing) close_later(state_->thread, state_->path, std::move(state_->file));
}

void LogFile::add(std::string_view bytes) {
  if (state_->lost) return;
  state_->waiting.append(bytes);
  write_next(state_);
}

void LogFile::write_next(const std::shared_ptr<State>& state) {
  if (state->writing) return;
  if (state->written == state->batch.size()) {
    if (state->waiting.empty()) return;
    state->batch.clear();
    state->batch.swap(state->waiting);
    state->written = 0;
  }
  state->writing = true;
  const std::size_t bytes = std::min(kJobBytes, state->batch.size() - state->written);
  state->thread.post(
      state->path,
      [state, bytes] {
        state->error = write_all(state->file.get(), std::string_view(state->batch).substr(state->written, bytes));
      },
      [state, bytes] {
        state->writing = false;
        state->written += bytes;
        if (state->error != 0 && !state->lost) {
          state->lost = true;
          state->waiting = {};
          state->batch = {};
          state->written = 0;
          if (state->handlers.on_lost) state->handlers.on_lost(errno_text(state->error));
        }
        write_next(state);
        if (state->released && !state->writing) close_later(state->thread, state->path, std::move(state->file));
        if (state->handlers.on_room) state->handlers.on_room();
      });
}

bool LogFile::is_behind() const { return !state_->lost && state_->waiting.size() > limits::kLogFileWaitingBytes; }

void LogFile::give_up() {
  state_->lost = true;
  state_->waiting = {};
}

const std::string& LogFile::path() const { return state_->path; }

}  // namespace elastic::output
