#pragma once

#include <optional>
#include <string>

#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Finds an attempt that failed of the same crash as the attempt before it: the program fails so wherever it runs.
class CrashLoop {
 public:
  // An attempt has failed, first of this crash, or of what is none. `attempt`: how many restarts were spent before it.
  // Returns the attempt before it where that failed of the same.
  std::optional<int> failed(const std::optional<protocol::Crash>& crash, int attempt);

  // Workers ran, and stopped for another reason than their own failure: what they did says nothing of what comes next.
  void interrupted() { last_.reset(); }

 private:
  struct Attempt {
    int number = 0;
    protocol::Crash crash;
  };
  std::optional<Attempt> last_;
};

// Why a job ends that failed alike in these two attempts.
std::string text_of_crash_loop(protocol::Crash::Kind kind, int first, int second);

}  // namespace elastic::coordinator
