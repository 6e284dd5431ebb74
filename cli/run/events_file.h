#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rendezvous/agent/event_line.h"
#include "src/base/json.h"
#include "src/output/side_file.h"

namespace elastic::run {

// The file of --events: gets every event of the launcher's log, whatever its level, as a line of JSON (docs/events.md).
// Whatever goes wrong with it costs lines, of which a later one tells how many, and one warning.
class EventsFile {
 public:
  // Opens the file to append to it, and hears the log from now on. One at a time. An empty path: does nothing.
  EventsFile(const std::string& path, agent::EventLines::Launch launch);
  ~EventsFile();
  EventsFile(const EventsFile&) = delete;
  EventsFile& operator=(const EventsFile&) = delete;

  // Hears no more, and waits for what is left to be written, as long as that gets on. False if the thread hangs: it
  // keeps this process from ending.
  bool finish();

 private:
  void heard(std::string_view level, std::string_view event, std::string_view text, const Json& fields);
  void warn(const std::string& reason);

  std::string path_;
  agent::EventLines lines_;
  std::unique_ptr<output::SideFile> file_;
  bool has_warned_ = false;
};

}  // namespace elastic::run
