#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/run/events_file.h"
#include "rendezvous/events/event_line.h"

namespace elastic::run {

// Makes a line of JSON (docs/observing.md) of every event of the launcher's log, whatever its level, for the file of
// --events and for one listener.
class EventStream {
 public:
  using Listener = std::function<void(std::string_view event, const std::string& line)>;

  // Listens to the log from now on; there may be one stream at a time. Without a file (an empty path) and a listener it
  // does nothing.
  EventStream(const std::string& path, const events::EventLines::Launch& launch, Listener listener);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Ends listening, and waits for the file as EventsFile::finish() does.
  bool finish();

 private:
  void on_event(std::string_view level, std::string_view event, std::string_view text, const Json& fields);

  events::EventLines lines_;
  EventsFile file_;
  Listener listener_;
  bool listens_ = false;
};

}  // namespace elastic::run
