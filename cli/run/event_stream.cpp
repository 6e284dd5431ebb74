#include "cli/run/event_stream.h"

#include <utility>

#include "src/base/log.h"

namespace elastic::run {

EventStream::EventStream(const std::string& path, const events::EventLines::Launch& launch, Listener listener)
    : lines_(launch), file_(path, launch), listener_(std::move(listener)), listens_(file_.is_open() || listener_) {
  if (!listens_) return;
  log::set_observer([this](log::Level level, std::string_view event, std::string_view text, const Json& fields) {
    on_event(log::name_of(level), event, text, fields);
  });
}

EventStream::~EventStream() {
  if (listens_) log::set_observer({});
}

void EventStream::on_event(std::string_view level, std::string_view event, std::string_view text, const Json& fields) {
  // The events waiting_began and waiting_ended say so already.
  if (event == "waiting") return;
  const std::string line = lines_.line(level, event, text, fields, event_moment());
  if (file_.is_open()) file_.append(line);
  if (listener_) listener_(event, line);
}

bool EventStream::finish() {
  if (std::exchange(listens_, false)) log::set_observer({});
  return file_.finish();
}

}  // namespace elastic::run
