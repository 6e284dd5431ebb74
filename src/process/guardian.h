#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"
#include "src/process/guardian_board.h"
#include "src/process/local_tasks.h"

// A launch has two processes. The outer one, which the user started, is the guardian: it is the launcher's parent,
// watches it, and reaps orphans. The launcher, its child in a process group of its own, does everything else. If either
// of them dies, the other ends every worker and all that the workers forked.
namespace elastic::process {

// The launcher's process name (comm). It differs from the guardian's, so that `pkill elastic-run` signals the guardian
// and leaves the launcher alive to clean up.
inline constexpr const char* kLauncherName = "elastic_launch";

// One packet between guardian and launcher. The comments say which of them sends it.
struct GuardianMessage {
  enum class Kind : std::uint32_t {
    kWorker = 1,     // launcher's child, just before it becomes a worker: value is its pid, a pidfd comes along
    kRoundOver = 2,  // launcher: none of the workers that were announced is left
    kPaused = 3,     // launcher: all workers are stopped, as SIGTSTP asked
    kSignal = 4,     // guardian: value is a signal that the user sent
    kHeard = 5,      // launcher: it has received the signal
    kLeaving = 6,    // launcher: all is done, value is the exit status, and a thread of it may hang
    kLease = 7,      // launcher: the lease on the board begins, or ends sooner than it did
  };
  Kind kind = Kind::kRoundOver;
  std::int32_t value = 0;
};

// One end of the connection between guardian and launcher.
struct GuardianChannel {
  UniqueFd socket;      // for GuardianMessage, both ways
  GuardianBoard board;  // shared memory, see guardian_board.h
};

struct GuardianSettings {
  std::vector<int> signals;         // handed to the launcher instead of ending the guardian
  std::string cgroup;               // the directory of the workers' cgroup, killed and removed at the end; may be empty
  rlim_t descriptors_below = 1024;  // those inherited lie below this number
  LocalTasksHost* local_tasks = nullptr;  // is told the guardian's exit status, as the last step; outlives the call
  std::string directory = {};             // of this launch (job_directory.h), removed at the end; may be empty
};

// Forks. Returns in the launcher only, with its end of the channel; the guardian never returns: it exits with
// the launcher's exit status, or with 1 and a message where the launcher was killed. Fails where fork or mmap
// fails. The process must have only one thread. The signals are blocked in both processes from before the fork on.
Result<GuardianChannel> split_off_launcher(const GuardianSettings& settings);

// The launcher's side of the channel.
class GuardianLink {
 public:
  struct Handlers {
    std::function<void(int signal)> on_signal;
    std::function<void()> on_lost;  // the guardian has died; called once
  };
  GuardianLink(net::Loop& loop, GuardianChannel channel, Handlers handlers);

  // For spawn(): the descriptor by which a child introduces itself to the guardian before it executes its program.
  int descriptor() const { return channel_.socket.get(); }
  void send(GuardianMessage message) const;

  // Sets until when the workers may run, in milliseconds of boottime_ms(); none: no lease is needed (there are no
  // workers, or no other node could take their place). 50 ms later the guardian kills by SIGKILL all that the launcher
  // has started, and leaves the launcher alive. The next round's workers start under another lease, or none. This costs
  // a store to memory, and a packet where a lease begins; a renewal does not wake the guardian.
  void set_lease(std::optional<std::int64_t> until_ms);
  // Once the launcher has ended with status 0 the guardian ends, too, and leaves alone the processes that are left.
  void leave_background() { channel_.board.leave_background(); }
  // Sets the death notice, which the guardian sends when the launcher has ended and nothing that it had started is
  // left: it connects to these addresses (kDeathNoticeListeners at most), sends the bytes (kDeathNoticeBytes at most)
  // and closes. Where a process is left, or the other side cannot be reached within 1 s, nothing is sent. Empty bytes,
  // or no address, clear the notice. A launcher that tells the coordinator itself clears it first.
  void set_death_notice(std::span<const SocketAddress> to, std::span<const std::uint8_t> bytes) {
    channel_.board.set_death_notice(to, bytes);
  }

 private:
  void receive();

  Handlers handlers_;
  GuardianChannel channel_;
  std::unique_ptr<net::ReadWatch> watch_;
};

// Tells the guardian of this very process, with its pidfd. Makes only system calls: for a child between vfork
// and exec. If the guardian does not read (it is stopped), the message is lost, and nobody waits.
void introduce_to_guardian(int channel, pid_t pid);

}  // namespace elastic::process
