#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/net/loop.h"

namespace elastic::process {

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;  // 0 if the kernel sent it (a terminal's Ctrl-C), or a process that this one cannot see
  uid_t user = 0;    // the sender's
};

// Returns those of the signals that this process does not ignore. The kernel queues a blocked signal even if it is
// ignored, so signals that nohup or a shell's `&` has set to be ignored must be left out here.
std::vector<int> not_ignored(const std::vector<int>& numbers);

// Turns signals into events of the loop. The signals are blocked from construction on and stay blocked.
// A signal that this process ignores is never reported (nohup keeps its meaning).
class SignalSource {
 public:
  SignalSource(net::Loop& loop, const std::vector<int>& numbers, std::function<void(const ReceivedSignal&)> callback);

  // Reports the signals that have arrived by now, without waiting for the loop.
  void read_all();

 private:
  std::function<void(const ReceivedSignal&)> callback_;
  UniqueFd fd_;
  std::unique_ptr<net::ReadWatch> watch_;
};

}  // namespace elastic::process
