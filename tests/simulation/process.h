#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// A process that takes one thing after another, and nothing while it is stopped.
class Process {
 public:
  bool is_alive() const { return alive_; }
  bool is_paused() const { return pauses_ > 0; }
  // Another each time it is started.
  std::uint32_t launch() const { return launch_; }

  void start() {
    alive_ = true;
    pauses_ = 0;
    waiting_.clear();
    ++launch_;
  }
  void end() {
    alive_ = false;
    waiting_.clear();
  }
  void pause() { ++pauses_; }
  // What has waited happens now; with `timers_first` as in a loop that looks at the clock before it reads.
  void resume(bool timers_first);

  // Does it now, or when the process is no longer stopped; never, if it has ended.
  template <class Doing>
  void run(bool is_timer, Doing&& doing) {
    if (!alive_) return;
    if (pauses_ > 0) {
      waiting_.push_back({is_timer, std::forward<Doing>(doing)});
    } else {
      doing();
    }
  }

 private:
  struct Waiting {
    bool is_timer;
    Action action;
  };
  bool alive_ = false;
  int pauses_ = 0;
  std::uint32_t launch_ = 0;
  std::vector<Waiting> waiting_;
};

}  // namespace elastic::simulation
