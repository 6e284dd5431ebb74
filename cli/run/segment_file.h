#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::run {

// Looks at this node's segment file (docs/slurm.md): a regular file that is not empty says that the scheduler does not
// want this node in another round. A file that is missing or empty, out of reach, or does not answer in time says
// nothing.
class SegmentFile {
 public:
  struct Handlers {
    // Whether the node is between two rounds, where the file is looked at now and then.
    std::function<bool()> is_idle;
    // Called at the end of each look. `drained`: the file's path, and the beginning of its first line, for people;
    // empty: the file says nothing.
    std::function<void(std::string drained)> on_seen;
  };
  // `path` is not empty.
  SegmentFile(net::Loop& loop, std::string path, Handlers handlers);

  // Looks at the file: on_seen, and then `next`, are called in a later turn of the loop, within 2 s. A look that has
  // not ended is given up.
  void look_at_file(std::function<void()> next = {});
  // A thread waits for the file, and keeps this process from ending.
  bool hangs() { return !thread_.wait(0); }

 private:
  struct Seen {
    std::string drained = {};
    std::string problem = {};  // why the file could not be looked at
  };
  static Seen read(const std::string& path);
  void looked(const Seen& seen);
  void warn(const std::string& problem);
  void look_when_idle();

  std::string path_;
  Handlers handlers_;
  net::SideThread thread_;  // for this file alone: its file system may hang while that of the logs does not
  net::ReadWatch done_watch_;
  net::Timer deadline_;
  net::Timer idle_;
  std::shared_ptr<const std::function<void()>> next_;  // of the look that has not ended; null: there is none
  std::string warned_of_;                              // the last problem
};

}  // namespace elastic::run
