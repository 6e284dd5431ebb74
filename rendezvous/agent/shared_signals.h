#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "rendezvous/agent/lifecycle.h"

namespace elastic::agent {

// Where whoever signals elastic-run may signal its workers as well, a worker is to get each signal once. Slurm is the
// case: by its way of tracking processes it signals every process of a step (proctrack/linuxproc; cgroup with
// SignalChildrenProcesses), or elastic-run's outer process alone (cgroup without, pgid). The launcher is the witness:
// it stands where the workers stand, a process below the outer one in a group of its own, so it gets what they get. An
// order to signal the workers that may have been forestalled in this way is put off for a moment; if the launcher gets
// the signal, too, the workers have had it, and the order is done.
class SharedSignals {
 public:
  // How long a witness is waited for. Slurm signals the processes of one node within milliseconds of each other, and
  // those of several nodes as far apart as its messages to them are under way.
  static constexpr std::int64_t kFromOutsideMs = 500;
  static constexpr std::int64_t kOthersOrderMs = 250;
  // Of a witness that comes before the order.
  static constexpr std::int64_t kFreshMs = 2'000;

  // New workers: no signal has reached them.
  void workers_began() { signals_.clear(); }
  // The launcher itself got a signal.
  void witnessed(int signal, std::int64_t now_ms);
  // An order of the agent. True: the workers are to be signalled now. False: they have been, or it is put off.
  bool ordered(const SignalWorkers& order, std::int64_t now_ms);
  // When the first order that was put off is to be carried out after all.
  std::optional<std::int64_t> due_ms() const;
  // Those whose time has come.
  std::vector<int> take_due(std::int64_t now_ms);

 private:
  struct Known {
    std::optional<std::int64_t> witnessed_ms;  // nobody's order has been matched with it
    std::optional<std::int64_t> due_ms;
    bool from_outside = false;  // of what is due
    bool reached = false;       // the workers have had one that ends them
  };

  std::map<int, Known> signals_;
  // A signal from outside has come without a witness: no order needs to be put off.
  bool reaches_us_only_ = false;
};

}  // namespace elastic::agent
