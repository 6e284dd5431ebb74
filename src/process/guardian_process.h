#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/process/descendants.h"
#include "src/process/guardian.h"

// The guardian's own code, for its files only: what it waits for and hears (guardian.cpp), whom it ends and
// how it ends itself (guardian_ending.cpp).
namespace elastic::process {

struct KnownWorker {
  pid_t pid;
  UniqueFd pidfd;  // none before Linux 5.3
};

class Guardian {
 public:
  // `channel`: its own end. `strangers`: children that this process had before, which are not ours to kill.
  Guardian(const GuardianSettings& settings, pid_t launcher, GuardianChannel channel, std::vector<pid_t> strangers);

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

  // Ends the workers where the launcher has let their lease pass; else sets the timer for that.
  void judge_lease();
  void set_lease_timer(std::optional<std::int64_t> at_ms);
  void end_workers_of_lease(std::int64_t until_ms);

  // True if one of them was still running.
  bool kill_known_workers();
  void kill_cgroup() const;
  void end_launcher();
  [[noreturn]] void launcher_ended(int status);
  [[noreturn]] void leave_launcher_behind();
  // Ends all descendants but those that were there before us. Returns those that have not died within so
  // many milliseconds.
  std::vector<ProcessFacts> sweep(std::int64_t milliseconds);
  // True if what is left is to live on after an end with this status.
  bool leaves_background(int status) const { return status == 0 && board_.leaves_background(); }
  void await_launcher(std::int64_t milliseconds) const;
  void say_farewell(const std::vector<ProcessFacts>& survivors) const;
  [[noreturn]] void leave(int status, const std::vector<ProcessFacts>& survivors);
  std::vector<ProcessFacts> ours() const;

  GuardianSettings settings_;
  pid_t launcher_;
  UniqueFd channel_;
  GuardianBoard board_;
  std::vector<pid_t> strangers_;
  UniqueFd signals_;
  UniqueFd lease_timer_;
  std::vector<KnownWorker> workers_;
  std::optional<std::int64_t> lease_timer_at_ms_;  // what the timer is set to
  std::optional<std::int64_t> ended_lease_ms_;     // the lease whose workers were ended
  std::int64_t first_stop_ms_ = 0;
  bool asked_to_stop_ = false;
  bool pause_wanted_ = false;                     // SIGTSTP has come, and no SIGCONT since
  bool continue_wanted_ = false;                  // the launcher is to go on once the lease has been judged
  std::optional<int> leaving_status_;             // the launcher is done, and may hang
  std::optional<std::int64_t> unheard_since_ms_;  // since when the launcher owes an answer to a user who insists
};

}  // namespace elastic::process
