#include "cli/run/event_stream.h"

#include <ctime>
#include <utility>

#include "cli/run/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/clock.h"

namespace elastic::run {
namespace {

// The present, by both clocks.
events::EventLines::Moment event_moment() {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  return {std::int64_t{wall.tv_sec} * 1'000'000 + wall.tv_nsec / 1000, process::monotonic_ms()};
}

}  // namespace

EventStream::EventStream(const std::string& path, const events::EventLines::Launch& launch, Listener listener)
    : lines_(launch), path_(path), listener_(std::move(listener)) {
  if (!path.empty()) open_file(launch);
  listens_ = file_ != nullptr || listener_;
  if (!listens_) return;
  log::set_observer([this](log::Level level, std::string_view event, std::string_view text, const Json& fields) {
    on_event(log::name_of(level), event, text, fields);
  });
}

EventStream::~EventStream() {
  if (listens_) log::set_observer({});
}

void EventStream::open_file(const events::EventLines::Launch& launch) {
  const auto loss_line = [lines = events::EventLines(launch)](std::uint64_t count) mutable {
    return lines.line("warning", "events_lost", format("{} events before this one are lost", count),
                      Json::object().set("count", static_cast<std::int64_t>(count)), event_moment());
  };
  file_ = std::make_unique<output::SideFile>(
      path_,
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

void EventStream::on_event(std::string_view level, std::string_view event, std::string_view text, const Json& fields) {
  // The events waiting_began and waiting_ended say so already.
  if (event == "waiting") return;
  const std::string line = lines_.line(level, event, text, fields, event_moment());
  if (file_) append(line);
  if (listener_) listener_(event, line);
}

void EventStream::append(const std::string& line) {
  if (!file_->append(line)) {
    warn(format("nothing reads it, and {} bytes are waiting; events are lost", limits::kEventsWaitingBytes));
  } else if (const int error = file_->error(); error != 0) {
    warn(format("{}; events are lost", errno_text(error)));
  }
}

void EventStream::warn(const std::string& reason) {
  if (std::exchange(has_warned_, true)) return;
  log::warning("no_events", format("--events={}: {}", printable(path_), reason));
}

bool EventStream::finish() {
  if (std::exchange(listens_, false)) log::set_observer({});
  if (!file_) return true;
  if (!file_->finish()) {
    warn("it does not answer; events are lost");
    return false;
  }
  if (file_->error() != 0) warn(format("{}; events are lost", errno_text(file_->error())));
  return true;
}

}  // namespace elastic::run
