#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/process/descendants.h"
#include "src/process/guardian.h"

// The guardian's own code, for its files only: its loop and its messages (guardian.cpp), and how it kills processes and
// ends (guardian_ending.cpp).
namespace elastic::process {

struct KnownWorker {
  pid_t pid;
  UniqueFd pidfd;  // none before Linux 5.3
};

class Guardian {
 public:
  // `channel`: its own end. `other_children`: children that this process had before the launch, which must not be
  // killed.
  Guardian(const GuardianSettings& settings, pid_t launcher, GuardianChannel channel,
           std::vector<pid_t> other_children);

  [[noreturn]] void run();

 private:
  void keep_only_what_is_needed();
  int patience_ms() const;
  void read_signals();
  void handle(int signal);
  void read_channel();
  void heard(GuardianMessage message, UniqueFd attached);
  void reap();
  void pause();
  void resume();

  // Kills the workers if the launcher has let their lease pass, and otherwise sets the timer for it.
  void judge_lease();
  void set_lease_timer(std::optional<std::int64_t> at_ms);
  void end_workers_of_lease(std::int64_t until_ms);

  // Returns whether one of them was still running.
  bool kill_known_workers();
  void kill_group_of_worker(pid_t child);
  void kill_cgroup() const;
  void end_launcher();
  [[noreturn]] void launcher_ended(const ExitStatus& status);
  [[noreturn]] void leave_launcher_behind();
  // Kills all descendants but `other_children`. Returns those that have not ended within so many milliseconds.
  std::vector<ProcessFacts> sweep(std::int64_t milliseconds);
  // Whether the processes that are left are to live on when the launcher has ended with this status.
  bool leaves_background(int status) const { return status == 0 && board_.leaves_background(); }
  void await_launcher(std::int64_t milliseconds) const;
  void say_death_notice(const std::vector<ProcessFacts>& survivors) const;
  [[noreturn]] void leave(int status, const std::vector<ProcessFacts>& survivors);
  std::vector<ProcessFacts> ours() const;

  GuardianSettings settings_;
  pid_t launcher_;
  UniqueFd channel_;
  GuardianBoard board_;
  std::vector<pid_t> other_children_;
  UniqueFd signals_;
  UniqueFd lease_timer_;
  std::vector<KnownWorker> workers_;
  std::optional<std::int64_t> lease_timer_at_ms_;  // when the timer fires
  std::optional<std::int64_t> ended_lease_ms_;     // the lease whose workers were ended
  std::int64_t first_stop_ms_ = 0;
  bool asked_to_stop_ = false;
  bool pause_wanted_ = false;                     // SIGTSTP has come, and no SIGCONT since
  bool continue_wanted_ = false;                  // the launcher is sent SIGCONT once the lease has been judged
  std::optional<int> leaving_status_;             // the launcher's exit status; the launcher itself may hang
  std::optional<std::int64_t> unheard_since_ms_;  // since when the launcher has not acknowledged a second signal
};

}  // namespace elastic::process
