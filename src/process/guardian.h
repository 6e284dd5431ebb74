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

// The two processes of a launch. The outer one, which the user started, is the guardian: parent, reaper
// and watchman of the launcher, which is its child in a process group of its own and does everything
// else. Whichever of them dies, the other ends every worker and whatever it forked.
namespace elastic::process {

// The launcher's name (comm), so that `pkill elastic-run` meets the guardian and leaves the launcher alive
// to clean up.
inline constexpr const char* kLauncherName = "elastic_launch";

// One packet between guardian and launcher.
struct GuardianMessage {
  enum class Kind : std::uint32_t {
    kWorker = 1,     // launcher's child, just before it becomes a worker: value is its pid, a pidfd comes along
    kRoundOver = 2,  // launcher: no worker that was told before is left
    kPaused = 3,     // launcher: all workers are stopped, as SIGTSTP asked
    kSignal = 4,     // guardian: value is a signal that the user sent
    kHeard = 5,      // launcher: the signal has come
    kLeaving = 6,    // launcher: all is done, value is the exit status, and a thread of it may hang
    kLease = 7,      // launcher: the lease on the board begins, or ends sooner than it did
  };
  Kind kind = Kind::kRoundOver;
  std::int32_t value = 0;
};

// One end of what ties the two together.
struct GuardianChannel {
  UniqueFd socket;      // for GuardianMessage, both ways
  GuardianBoard board;  // what the guardian must know when the launcher does not run any more
};

struct GuardianSettings {
  std::vector<int> signals;         // handed to the launcher instead of ending the guardian
  std::string cgroup;               // the directory of the workers' cgroup, killed and removed at the end; may be empty
  rlim_t descriptors_below = 1024;  // those inherited lie below this number
  LocalTasksHost* local_tasks = nullptr;  // told the guardian's exit status, after all else; outlives the call
};

// Forks. Returns, in the launcher only, its end of the channel; the guardian never returns, it exits with
// the launcher's exit status, or with 1 and a message where the launcher was killed. Fails where no
// process can be forked or no memory be had. To be called while the process has one thread. The signals
// are blocked in both from before the fork on.
Result<GuardianChannel> split_off_launcher(const GuardianSettings& settings);

// The launcher's side of the channel.
class GuardianLink {
 public:
  struct Handlers {
    std::function<void(int signal)> on_signal;
    std::function<void()> on_lost;  // the guardian has died. Told once.
  };
  GuardianLink(net::Loop& loop, GuardianChannel channel, Handlers handlers);

  // For spawn(): through it a child makes itself known before it executes its program.
  int descriptor() const { return channel_.socket.get(); }
  void send(GuardianMessage message) const;

  // Until when the workers may run, in milliseconds of boottime_ms(); none: no lease is needed (no workers, or
  // nobody who could take their place). 50 ms after it the guardian ends by SIGKILL all that the launcher has
  // started, and leaves the launcher alive. The next round's workers start under another lease, or none.
  // Costs a store to memory, and a packet where a lease begins; a renewal does not even wake the guardian.
  void set_lease(std::optional<std::int64_t> until_ms);
  // Once the launcher has ended with 0 the guardian ends, too, and leaves alone what is left.
  void leave_background() { channel_.board.leave_background(); }
  // What the guardian says when the launcher has ended and nothing that it had started is left: it connects to
  // this numeric address, sends the bytes (kFarewellBytes at most) and closes. Where something is left, or the
  // other side cannot be reached within 1 s, nothing is said. Empty bytes, or an address that is not numeric:
  // nothing is to be said any more. A launcher that says goodbye itself clears the word first.
  void set_farewell(const std::string& address, std::uint16_t port, std::span<const std::uint8_t> bytes);

 private:
  void receive();

  Handlers handlers_;
  GuardianChannel channel_;
  std::unique_ptr<net::ReadWatch> watch_;
};

// Sends a message about this very process with its pidfd. Only system calls: for a child between vfork
// and exec. A guardian that does not read (stopped) costs the message, never a wait.
void introduce_to_guardian(int channel, pid_t pid);

}  // namespace elastic::process
