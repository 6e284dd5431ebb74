#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// A process that handles one event after another, and none while it is stopped.
class Process {
 public:
  bool is_alive() const { return alive_; }
  bool is_paused() const { return pauses_ > 0; }
  // The number of the start: another one each time.
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
  // Handles the events that have waited. With `timers_first` timers come first, as in a loop that checks the clock
  // before it reads.
  void resume(bool timers_first);

  // Calls the function now, or when the process is resumed; never if it has ended.
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
