#pragma once

#include <optional>
#include <string>

#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Detects an attempt that failed with the same crash as the attempt before it: a restart would fail alike.
class CrashLoop {
 public:
  // An attempt has failed. `crash` is that of the worker that failed first; empty if it is no such crash. `attempt` is
  // how many restarts were spent before. Returns the number of the previous attempt if that one failed with the same
  // crash.
  std::optional<int> failed(const std::optional<protocol::Crash>& crash, int attempt);

  // Workers ran, and stopped for another reason than a failure of theirs: earlier attempts are not compared any more.
  void interrupted() { last_.reset(); }

  // An attempt that failed with a crash. `number` is how many restarts were spent before it.
  struct Attempt {
    int number = 0;
    protocol::Crash crash;
    bool operator==(const Attempt&) const = default;
    static void fields(auto& io, auto& v) { each(io, "number", v.number, "crash", v.crash); }
  };
  // The attempt with which the next one is compared, for a coordinator that takes the job over.
  const std::optional<Attempt>& last() const { return last_; }
  void set_last(const std::optional<Attempt>& last) { last_ = last; }

 private:
  std::optional<Attempt> last_;
};

// The reason in the result of a job that failed alike in these two attempts.
std::string text_of_crash_loop(protocol::Crash::Kind kind, int first, int second);

}  // namespace elastic::coordinator
