#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/events/event_line.h"
#include "src/output/side_file.h"

namespace elastic::run {

// Makes a line of JSON (docs/observing.md) of every event of the launcher's log, whatever its level, for the file of
// --events and for one listener. Whatever goes wrong with the file costs lines, of which a later one tells how many,
// and one warning.
class EventStream {
 public:
  using Listener = std::function<void(std::string_view event, const std::string& line)>;

  // Opens the file to append to it, and listens to the log from now on; there may be one stream at a time. Without a
  // file (an empty path) and a listener it does nothing.
  EventStream(const std::string& path, const events::EventLines::Launch& launch, Listener listener);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Ends listening, and waits for what is left to be written, as long as that gets on. False if the thread hangs: it
  // keeps this process from ending.
  bool finish();

 private:
  void open_file(const events::EventLines::Launch& launch);
  void on_event(std::string_view level, std::string_view event, std::string_view text, const Json& fields);
  void append(const std::string& line);
  void warn(const std::string& reason);

  events::EventLines lines_;
  std::string path_;
  std::unique_ptr<output::SideFile> file_;  // null where it takes no lines, now or when it answers
  Listener listener_;
  bool listens_ = false;
  bool has_warned_ = false;
};

}  // namespace elastic::run
