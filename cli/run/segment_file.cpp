#include "cli/run/segment_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cli/run/limits.h"
#include "src/base/log.h"
#include "src/base/patience.h"
#include "src/base/read_file.h"
#include "src/base/text.h"

namespace elastic::run {
namespace {

constexpr std::int64_t kIdleLookMs = 10'000;
constexpr std::size_t kLineBytes = 200;

}  // namespace

SegmentFile::SegmentFile(net::Loop& loop, std::string path, Handlers handlers)
    : path_(std::move(path)),
      handlers_(std::move(handlers)),
      done_watch_(loop, thread_.done_descriptor(), [this] { thread_.run_done(); }),
      deadline_(loop),
      idle_(loop) {
  look_when_idle();
}

void SegmentFile::look_at_file(std::function<void()> next) {
  next_ = std::make_shared<const std::function<void()>>(std::move(next));
  const auto seen = std::make_shared<Seen>();
  const std::int64_t limit_ms = patient_ms(limits::kSegmentLookMs);
  // The thread may still be at an earlier look: then this one is not waited for.
  const bool is_stuck = thread_.stuck_for(limit_ms).has_value();
  deadline_.start(is_stuck ? 0 : limit_ms, [this] {
    thread_.run_done();  // the answer may have come while this process did not run
    if (next_) looked({.problem = format("it did not answer within {} s", limits::kSegmentLookMs / 1000)});
  });
  if (is_stuck) return;
  // The thread may hang for longer than this lives.
  thread_.post(
      path_, [seen, path = path_] { *seen = read(path); },
      [this, seen, asked = std::weak_ptr(next_)] {
        if (!asked.expired()) looked(*seen);
      });
}

SegmentFile::Seen SegmentFile::read(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno != ENOENT) return {.problem = errno_text(errno)};
    const bool has_directory = ::stat(path.substr(0, path.rfind('/') + 1).c_str(), &facts) == 0;
    return {.problem = has_directory ? "" : "there is no such directory"};
  }
  if (!S_ISREG(facts.st_mode)) return {.problem = "it is no regular file"};
  if (facts.st_size == 0) return {};
  const auto text = read_file(path, kLineBytes);
  const std::string line = text ? text->substr(0, text->find('\n')) : "";
  return {.drained = line.empty() ? printable(path) : format("{} ({})", printable(path), printable(line))};
}

void SegmentFile::looked(const Seen& seen) {
  const auto next = std::exchange(next_, nullptr);
  deadline_.stop();
  if (!seen.problem.empty()) warn(seen.problem);
  handlers_.on_seen(seen.drained);
  if (*next) (*next)();
}

void SegmentFile::warn(const std::string& problem) {
  if (std::exchange(warned_of_, problem) == problem) return;
  log::warning("segment_file", format("{}: {}; this node goes on", printable(path_), problem));
}

void SegmentFile::look_when_idle() {
  idle_.start(kIdleLookMs, [this] {
    if (!next_ && handlers_.is_idle()) look_at_file();
    look_when_idle();
  });
}

}  // namespace elastic::run
