#pragma once

#include <memory>
#include <string>

#include "rendezvous/events/event_line.h"
#include "src/output/side_file.h"

namespace elastic::run {

// The present, by both clocks.
events::EventLines::Moment event_moment();

// The file of --events. Whatever goes wrong with it costs lines, of which a later one tells how many, and one warning.
class EventsFile {
 public:
  // Opens the file to append to it. An empty path: there is none.
  EventsFile(const std::string& path, events::EventLines::Launch launch);
  EventsFile(const EventsFile&) = delete;
  EventsFile& operator=(const EventsFile&) = delete;

  // It takes lines, now or when it answers.
  bool is_open() const { return file_ != nullptr; }
  // A line with its end. Only of a file that is open.
  void append(const std::string& line);
  // Waits for what is left to be written, as long as that gets on. False if the thread hangs: it keeps this process
  // from ending.
  bool finish();

 private:
  void warn(const std::string& reason);

  std::string path_;
  std::unique_ptr<output::SideFile> file_;
  bool has_warned_ = false;
};

}  // namespace elastic::run
