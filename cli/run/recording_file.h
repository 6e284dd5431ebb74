#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/output/side_file.h"

namespace elastic::run {

// A file to which a recording is written as it happens, beside the loop. Whatever goes wrong with it costs the
// recording only, and one warning.
class RecordingFile {
 public:
  // Makes the file, or empties it. Fails where that is refused; a place that does not answer in time is given up.
  static Result<std::unique_ptr<RecordingFile>> open(const std::string& path);

  // Takes lines to be written, each with its end. Never waits.
  void append(std::string_view lines);

  // Waits for what is left to be written, as long as that gets on. False if the thread hangs: it keeps this process
  // from ending.
  bool finish();

 private:
  explicit RecordingFile(const std::string& path);
  void give_up(const std::string& reason);

  std::string path_;
  bool given_up_ = false;
  output::SideFile file_;
};

}  // namespace elastic::run
