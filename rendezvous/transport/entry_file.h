#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/discovery/entry.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::transport {

// Reads and writes a file of entries. The calls block as long as the file system does. `hopeless` marks failures that
// another attempt will not mend: no such directory, no permission, a file that elastic-run has not written.
namespace entry_file {

using Outcome = discovery::RegisterAnswer;

// A lock that is older than this was left by a process that died, or was stopped for so long.
inline constexpr std::int64_t kStaleLockMs = 5'000;
// How long another node's lock is waited for.
inline constexpr std::int64_t kLockPatienceMs = 1'500;

// The entry of a job; empty if the file, or the job in it, is missing.
Outcome read(const std::string& path, const std::string& job);
// Takes a lock beside the file: a hard link named "<path>.lock", which a network file system makes at most once (the
// call fails if it does not, or if it makes no hard links). Writes another file and renames it over the first, so that
// readers see either of them. Removes the file when no job is left in it. Returns the entry that is there afterwards.
Outcome compare_set(const std::string& path, const std::string& job, const std::string& expected,
                    const std::string& desired);

// The kind of the file system of the file's directory if other hosts do not see it: "ext4"; empty if they may.
std::string unshared_kind(const std::string& path);

}  // namespace entry_file

// The entry of a job (discovery::entry_text) in a file that all nodes share, which is changed by compare-and-set only.
// One call at a time. A thread of its own does all file operations, since the file system may hang.
class EntryFile {
 public:
  // Gets the text of the present entry; empty if there is none.
  using Done = std::function<void(discovery::RegisterAnswer)>;

  EntryFile(net::Loop& loop, std::string path, std::string job);

  // read() and compare_set() call `done` once, in a later turn of the loop, within some seconds.
  void read(Done done);
  // Replaces `expected` by `desired` if `expected` is the present text. An empty text means that there is no entry.
  void compare_set(std::string expected, std::string desired, Done done);
  // `tell` gets unshared_kind(), if there is one, unless another call comes before that is known.
  void look_whether_shared(std::function<void(const std::string& kind)> tell);
  // Cancels the callback of the present call, though the call may still take effect.
  void forget();
  // See Discovery.
  bool hangs() const;
  // "file /shared/meeting".
  std::string name() const;

 private:
  using Work = std::function<entry_file::Outcome()>;

  void ask(Work work, Done done);
  void begin();

  const std::string path_;
  const std::string job_;
  net::Timer timer_;
  net::SideThread thread_;
  net::ReadWatch done_watch_;
  bool busy_ = false;  // the thread is doing something
  Work next_;          // what the thread is to do next
  Done done_;          // the callback of the last call; empty after forget()
  std::uint64_t asked_ = 0;
};

}  // namespace elastic::transport
