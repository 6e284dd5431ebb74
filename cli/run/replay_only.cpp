#include "cli/run/commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "rendezvous/trace/limits.h"
#include "rendezvous/trace/replay.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/output/write_all.h"

namespace elastic::run {
namespace {

constexpr int kExitUsage = 2;
constexpr std::size_t kReadBytes = 64 * 1024;

// Reads an open file line by line.
class Lines {
 public:
  explicit Lines(int descriptor) : descriptor_(descriptor) {}

  // Returns the next line; none at the end, or where reading fails. A line that is too long is cut, but stays
  // recognisable as too long.
  std::optional<trace::SourceLine> next() {
    std::size_t looked_at = begin_;
    for (;;) {
      const std::size_t end = buffer_.find('\n', looked_at);
      const bool is_too_long = end == std::string::npos && buffer_.size() - begin_ > limits::kRecordingLineBytes;
      if (end != std::string::npos || is_too_long) {
        const std::size_t size = (is_too_long ? buffer_.size() : end) - begin_;
        trace::SourceLine line{buffer_.substr(begin_, size), true};
        begin_ += is_too_long ? size : size + 1;
        return line;
      }
      buffer_.erase(0, std::exchange(begin_, 0));
      looked_at = buffer_.size();
      if (!fill()) break;
    }
    if (buffer_.empty()) return {};
    return trace::SourceLine{std::exchange(buffer_, {}), false};
  }

  // The errno of a failed read; 0 if none failed.
  int error() const { return error_; }

 private:
  // Reads more bytes; false at the end.
  bool fill() {
    const std::size_t size = buffer_.size();
    buffer_.resize(size + kReadBytes);
    ssize_t count = 0;
    do {
      count = read(descriptor_, buffer_.data() + size, kReadBytes);
    } while (count < 0 && errno == EINTR);
    if (count < 0) error_ = errno;
    buffer_.resize(size + static_cast<std::size_t>(count > 0 ? count : 0));
    return count > 0;
  }

  int descriptor_;
  int error_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;  // where the next line begins
};

int refuse(const Error& error) {
  log::critical(error.text());
  return kExitUsage;
}

int refuse_stdout(int error) { return refuse(Error{"stdout", errno_text(error), ""}); }

int print_steps(trace::Replay& replay, Lines& lines, const std::string& name) {
  for (;;) {
    const auto step = replay.next();
    if (!step) return refuse(step.error());
    if (!*step && lines.error() != 0) return refuse(Error{name, errno_text(lines.error()), ""});
    const int error = output::write_all(STDOUT_FILENO, *step ? replay.text(**step) : replay.last_line());
    if (error != 0) return refuse_stdout(error);
    if (!*step) return 0;
  }
}

}  // namespace

int print_replay(const std::string& file) {
  const std::string name = file == "-" ? "stdin" : printable(file);
  UniqueFd opened;
  if (file != "-") {
    opened = UniqueFd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!opened) return refuse(fail_errno(format("--replay={}", name), errno, "name a recording").error());
  }
  Lines lines(file == "-" ? STDIN_FILENO : opened.get());
  trace::Replay replay([&lines] { return lines.next(); }, name);
  const auto first = replay.begin();
  if (lines.error() != 0) return refuse(Error{name, errno_text(lines.error()), "name a recording"});
  if (!first) return refuse(first.error());
  if (const int error = output::write_all(STDOUT_FILENO, *first); error != 0) return refuse_stdout(error);
  return print_steps(replay, lines, name);
}

}  // namespace elastic::run
