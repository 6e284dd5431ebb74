#include "src/output/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/text.h"
#include "src/output/limits.h"
#include "src/output/lines/rotation.h"
#include "src/output/write_all.h"

namespace elastic::output {

// The most bytes that one job of the thread writes, so that a file system that is only slow is seen to make progress.
constexpr std::size_t kJobBytes = 256 * 1024;
constexpr rlim_t kDescriptorsFrom = 4096;

// The LogFile and the thread share this, for a write may outlive the LogFile. While the thread writes, only it uses
// `file`, `rotation`, `batch` and `problem`.
struct LogFile::State {
  net::SideThread& thread;
  std::string path;
  UniqueFd file;
  Rotation rotation;
  Handlers handlers;  // no on_room once the LogFile has gone
  std::string waiting;
  std::string batch;
  std::size_t written = 0;  // of the batch
  std::string problem;
  bool writing = false;
  bool lost = false;
  bool released = false;  // the LogFile has gone
};

namespace {

// Renames the full file to that of the older one, and begins a new one with `carry`, with which the full one ends.
// Returns why that failed; empty if it is done.
std::string begin_next(UniqueFd& file, const std::string& path, std::string_view carry) {
  const std::string older = path + ".1";
  // ENOENT: somebody has removed the file.
  if (rename(path.c_str(), older.c_str()) != 0 && errno != ENOENT) {
    return format("it cannot be renamed to {}: {}", printable(older), errno_text(errno));
  }
  auto next = open_log_file(path);
  if (!next) return next.error().reason;
  if (const int error = write_all(next->get(), carry); error != 0) return errno_text(error);
  // The old file is cut last, so that no byte is lost if anything fails before.
  if (!carry.empty()) {
    struct stat status {};
    const auto end = static_cast<off_t>(carry.size());
    if (fstat(file.get(), &status) != 0 || ftruncate(file.get(), status.st_size - end) != 0) return errno_text(errno);
  }
  file = std::move(*next);
  return {};
}

}  // namespace

Result<UniqueFd> open_log_file(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file) return fail_errno(format("cannot open the log file {}", printable(path)), errno);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t from = std::min<rlim_t>(limit.rlim_cur / 2, kDescriptorsFrom);
  UniqueFd high(fcntl(file.get(), F_DUPFD_CLOEXEC, static_cast<int>(from)));
  return high ? std::move(high) : std::move(file);
}

void close_later(net::SideThread& thread, const std::string& path, UniqueFd file) {
  if (!file) return;
  const auto last = std::make_shared<UniqueFd>(std::move(file));
  thread.post(path, [last] { *last = UniqueFd(); });
}

LogFile::LogFile(net::SideThread& thread, std::string path, UniqueFd file, std::uint64_t max_bytes, Handlers handlers)
    : state_(new State{
          thread, std::move(path), std::move(file), Rotation(max_bytes), std::move(handlers), {}, {}, 0, {}}) {}

LogFile::~LogFile() {
  state_->handlers.on_room = {};  // the owner may be gone before the waiting bytes are written
  state_->released = true;
  if (!state_->writing) close_later(state_->thread, state_->path, std::move(state_->file));
}

void LogFile::add(std::string_view bytes) {
  if (state_->lost) return;
  state_->waiting.append(bytes);
  write_next(state_);
}

// Runs on the thread. Returns why the bytes cannot be written; empty if they are.
std::string LogFile::write_part(State& state, std::string_view bytes) {
  while (!bytes.empty()) {
    const Rotation::Step step = state.rotation.next(bytes);
    const int error = write_all(state.file.get(), bytes.substr(0, step.write));
    if (error != 0) return errno_text(error);
    bytes.remove_prefix(step.write);
    if (!step.rotate) continue;
    if (std::string problem = begin_next(state.file, state.path, step.carry); !problem.empty()) return problem;
  }
  return {};
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
        state->problem = write_part(*state, std::string_view(state->batch).substr(state->written, bytes));
      },
      [state, bytes] {
        state->writing = false;
        state->written += bytes;
        if (!state->problem.empty() && !state->lost) {
          state->lost = true;
          state->waiting = {};
          state->batch = {};
          state->written = 0;
          if (state->handlers.on_lost) state->handlers.on_lost(state->problem);
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
