#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/output/side_file.h"

namespace elastic::run {

// The file of --record, which a side thread writes as things happen. If anything goes wrong with it, the recording ends
// with one warning, and the job goes on.
class RecordingFile {
 public:
  // Creates or truncates the file. Fails where the system refuses that. If the file system does not respond in time,
  // the recording is given up.
  static Result<std::unique_ptr<RecordingFile>> open(const std::string& path);

  // Queues lines to be written, each with its line end. Never waits.
  void append(std::string_view lines);

  // Waits until all is written, as long as the thread makes progress. Returns false if the thread hangs, so that this
  // process cannot end.
  bool finish();

 private:
  explicit RecordingFile(const std::string& path);
  void give_up(const std::string& reason);

  std::string path_;
  bool given_up_ = false;
  output::SideFile file_;
};

}  // namespace elastic::run
