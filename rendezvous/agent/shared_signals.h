#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "rendezvous/agent/lifecycle_events.h"

namespace elastic::agent {

// Makes sure that workers get each signal once although Slurm may signal them itself. Depending on how Slurm tracks
// processes it signals every process of a step (proctrack/linuxproc; cgroup with SignalChildrenProcesses), or
// elastic-run's outer process alone (cgroup without it, pgid). The launcher, like the workers a child of the outer
// process in a process group of its own, gets what they get. An order to signal the workers is put off for a moment if
// Slurm may have signalled them: when the launcher itself gets the signal the workers have had it, and the order is
// done.
class SharedSignals {
 public:
  // How long an order waits for the launcher's own signal. Slurm signals the processes of one node within milliseconds
  // of each other, and those of several nodes as far apart as its messages to them arrive.
  static constexpr std::int64_t kFromOutsideMs = 500;
  static constexpr std::int64_t kOthersOrderMs = 250;
  // A signal that the launcher got longer before the order has nothing to do with it.
  static constexpr std::int64_t kFreshMs = 2'000;

  // New workers run, which no signal has reached.
  void workers_began() { signals_.clear(); }
  // The launcher itself got a signal.
  void witnessed(int signal, std::int64_t now_ms);
  // The agent wants the workers signalled. True: now. False: they have had the signal, or the order is put off.
  bool ordered(const SignalWorkers& order, std::int64_t now_ms);
  // When the first of the orders that were put off is due.
  std::optional<std::int64_t> due_ms() const;
  // The signals that are due: the workers are to get them now.
  std::vector<int> take_due(std::int64_t now_ms);

 private:
  struct Known {
    std::optional<std::int64_t> witnessed_ms;  // the launcher got it, and no order belongs to it yet
    std::optional<std::int64_t> due_ms;
    bool from_outside = false;  // the order that is due has Cause::kFromOutside
    bool reached = false;       // the workers have had it, and it ends them
  };

  std::map<int, Known> signals_;
  // A signal from outside has reached the outer process only: no order needs to be put off.
  bool reaches_us_only_ = false;
};

}  // namespace elastic::agent
