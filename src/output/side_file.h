#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/net/side_thread.h"

namespace elastic::output {

// A file to which lines are written as things happen, by a thread of its own: it may lie on a file system that hangs,
// or be a pipe that nobody reads. All members are for the loop's thread, and none waits longer than it says.
class SideFile {
 public:
  struct Options {
    bool appends = false;           // to what is there; otherwise the file is emptied
    std::size_t waiting_bytes = 0;  // that may wait to be written
    // Where it is set, lines may be lost, one by one, and each is one write(). It makes the line that says how many
    // were lost, before the next one; called on the thread.
    std::function<std::string(std::uint64_t count)> loss_line = {};
  };
  explicit SideFile(std::string path, Options options);

  // Begins to make or open the file, and waits for that for 2 s.
  enum class Opened { kOpen, kFailed, kHangs };
  Opened open();

  // Takes lines to be written, each with its end. False if there is no room; then nothing is taken.
  bool append(std::string_view lines);
  // The first error, 0 if there was none; after one only a file with a loss_line is tried again.
  int error() const;

  // Waits for what is left to be written, as long as that gets on. False if it does not.
  bool finish();
  // The thread that waits for the file keeps this process from ending.
  bool hangs() { return !thread_.wait(0); }

 private:
  struct State;

  std::string path_;
  std::shared_ptr<State> state_;  // belongs to the thread, too, which may outlive us
  net::SideThread thread_;
};

}  // namespace elastic::output
