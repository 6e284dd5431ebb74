#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/net/side_thread.h"

namespace elastic::runtime {

// A file to which a recording is written as it happens, by a thread of its own: the file may lie on a file system that
// hangs, or be a pipe that nobody reads. Whatever goes wrong with it costs the recording only, and one warning.
class RecordingFile {
 public:
  // Makes the file, or empties it. Fails where that is refused; a place that does not answer in time is given up.
  static Result<std::unique_ptr<RecordingFile>> open(const std::string& path);
  ~RecordingFile();
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  // Takes lines to be written, each with its end. Never waits.
  void append(std::string_view lines);

  // Waits for what is left to be written, as long as that gets on. False if the thread hangs: it keeps this process
  // from ending.
  bool finish();

 private:
  struct State;
  explicit RecordingFile(std::string path);
  void give_up(const std::string& reason);

  std::string path_;
  bool given_up_ = false;
  std::shared_ptr<State> state_;  // belongs to the thread, too, which may outlive us
  net::SideThread thread_;
};

}  // namespace elastic::runtime
