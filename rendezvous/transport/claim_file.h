#pragma once

#include <cstdint>
#include <memory>

#include "rendezvous/transport/claim_register.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/side_thread.h"

namespace elastic::transport {

// What is done to a file of claims, at once and by whoever calls; may block for as long as the file system likes.
// `hopeless` tells those failures apart that time won't mend: no such directory, no permission, another's file.
namespace claim_file {

using Outcome = std::expected<std::string, ClaimRegister::Failure>;

// A lock that is older than this was left by a process that died. One that was stopped for so long with the lock in its
// hand is dealt with by locate::Tenure.
inline constexpr std::int64_t kStaleLockMs = 5'000;
// How long a lock that somebody else has is waited for.
inline constexpr std::int64_t kLockPatienceMs = 1'500;

// The claim of a job, empty where the file or the job in it is missing.
Outcome read(const std::string& path, const std::string& job);
// Holds a lock beside the file, a hard link named "<path>.lock", which a network file system makes at most once (where
// it does not, or makes none, that is the failure); writes
// another file and renames it over the first, so that readers see the one or the other. Removes the file when no job is
// left in it. Returns what stands there afterwards.
Outcome compare_set(const std::string& path, const std::string& job, const std::string& expected,
                    const std::string& desired);

}  // namespace claim_file

// The claim of a job in a file that all nodes share. The file system may hang: all is done by a thread of its own.
class ClaimFile : public ClaimRegister {
 public:
  ClaimFile(net::Loop& loop, std::string path, std::string job);

  void read(Done done) override;
  void compare_set(std::string expected, std::string desired, Done done) override;
  void forget() override;
  bool hangs() const override;
  std::string name() const override;

 private:
  using Work = std::function<claim_file::Outcome()>;

  void ask(Work work, Done done);
  void begin();

  const std::string path_;
  const std::string job_;
  net::Timer timer_;
  net::SideThread thread_;
  net::ReadWatch done_watch_;
  bool busy_ = false;  // the thread is at something
  Work next_;          // what it is to do then
  Done done_;          // of what was asked last; empty: forgotten
  std::uint64_t asked_ = 0;
};

}  // namespace elastic::transport
