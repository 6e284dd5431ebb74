#include "cli/run/events_file.h"

#include <ctime>
#include <utility>

#include "cli/run/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/clock.h"

namespace elastic::run {

events::EventLines::Moment event_moment() {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  return {std::int64_t{wall.tv_sec} * 1'000'000 + wall.tv_nsec / 1000, process::monotonic_ms()};
}

EventsFile::EventsFile(const std::string& path, events::EventLines::Launch launch) : path_(path) {
  if (path.empty()) return;
  const auto loss_line = [lines = events::EventLines(std::move(launch))](std::uint64_t count) mutable {
    return lines.line("warning", "events_lost", format("{} events before this one are lost", count),
                      Json::object().set("count", static_cast<std::int64_t>(count)), event_moment());
  };
  file_ = std::make_unique<output::SideFile>(
      path,
      output::SideFile::Options{.appends = true, .waiting_bytes = limits::kEventsWaitingBytes, .loss_line = loss_line});
  switch (file_->open()) {
    case output::SideFile::Opened::kOpen: break;
    case output::SideFile::Opened::kHangs:
      warn("it does not answer");  // events wait for it
      break;
    case output::SideFile::Opened::kFailed:
      warn(format("{}; going on without it", errno_text(file_->error())));
      file_.reset();
  }
}

void EventsFile::append(const std::string& line) {
  if (!file_->append(line)) {
    warn(format("nothing reads it, and {} bytes are waiting; events are lost", limits::kEventsWaitingBytes));
  } else if (const int error = file_->error(); error != 0) {
    warn(format("{}; events are lost", errno_text(error)));
  }
}

void EventsFile::warn(const std::string& reason) {
  if (std::exchange(has_warned_, true)) return;
  log::warning("no_events", format("--events={}: {}", printable(path_), reason));
}

bool EventsFile::finish() {
  if (!file_) return true;
  if (!file_->finish()) {
    warn("it does not answer; events are lost");
    return false;
  }
  if (file_->error() != 0) warn(format("{}; events are lost", errno_text(file_->error())));
  return true;
}

}  // namespace elastic::run
