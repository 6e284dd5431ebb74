#include "cli/run/event_stream.h"

#include <utility>

#include "src/base/log.h"

namespace elastic::run {

EventStream::EventStream(const std::string& path, const agent::EventLines::Launch& launch, Listener listener)
    : lines_(launch), file_(path, launch), listener_(std::move(listener)), hears_(file_.is_open() || listener_) {
  if (!hears_) return;
  log::set_observer([this](log::Level level, std::string_view event, std::string_view text, const Json& fields) {
    heard(log::name_of(level), event, text, fields);
  });
}

EventStream::~EventStream() {
  if (hears_) log::set_observer({});
}

void EventStream::heard(std::string_view level, std::string_view event, std::string_view text, const Json& fields) {
  // Where a wait begins and ends is told by events of its own.
  if (event == "waiting") return;
  const std::string line = lines_.line(level, event, text, fields, event_moment());
  if (file_.is_open()) file_.append(line);
  if (listener_) listener_(event, line);
}

bool EventStream::finish() {
  if (std::exchange(hears_, false)) log::set_observer({});
  return file_.finish();
}

}  // namespace elastic::run
