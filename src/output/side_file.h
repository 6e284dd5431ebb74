#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/net/side_thread.h"

namespace elastic::output {

// A file to which lines are written as things happen, by a thread of its own, for it may be on a file system that
// hangs, or be a pipe that nobody reads. All members are for the loop's thread, and none waits longer than it says.
class SideFile {
 public:
  struct Options {
    bool appends = false;           // keeps what is in the file; otherwise it is truncated
    std::size_t waiting_bytes = 0;  // the most bytes that may wait to be written
    // If set, single lines may be lost, and each line is one write(). It makes the line that says how many
    // were lost, which is written before the next one; called on the thread.
    std::function<std::string(std::uint64_t count)> loss_line = {};
  };
  explicit SideFile(std::string path, Options options);

  // Creates or opens the file, and waits for that for at most 2 s.
  enum class Opened { kOpen, kFailed, kHangs };
  Opened open();

  // Queues lines to be written, each with its line end. Returns false, and queues nothing, if there is no room.
  bool append(std::string_view lines);
  // The first error, 0 if there was none. After an error only a file with a loss_line is written to again.
  int error() const;

  // Waits until all is written, as long as the thread makes progress. False if it does not.
  bool finish();
  // Whether the thread is blocked by the file, so that this process cannot end.
  bool hangs() { return !thread_.wait(0); }

 private:
  struct State;

  std::string path_;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive the SideFile
  net::SideThread thread_;
};

}  // namespace elastic::output
