#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// What an agent without a session could have reached of its coordinator, and when it tried: one that gives up must have
// had no chance.
//
// A chance is an attempt during which the way was open until it must have been answered; or such a time, with nothing
// else to be waited for, in which the agent should have begun one and did not.
class Reach {
 public:
  struct Times {
    Ms attempt_ms = 0;     // from the attempt to the welcome, at most
    Ms pause_ms = 0;       // between two attempts, at most
    Ms unanswered_ms = 0;  // until an attempt that is not answered is given up
  };

  // Another agent.
  void begin(Ms now_ms);
  // It has a session.
  void attached(Ms now_ms);
  void tries(Ms now_ms);
  // The last attempt has come to nothing.
  void has_failed(Ms now_ms);
  // Both processes and both hosts are awake and packets go both ways, or not all of that.
  void is_open(bool open, Ms now_ms);
  // What is under way is lost, as by a reset.
  void is_disturbed(Ms now_ms);
  // Nothing of its own keeps it from trying: no workers are to end first.
  void is_free(bool free, Ms now_ms);

  // The first chance since `from_ms`, in words; nothing: there was none.
  std::optional<std::string> chance(Ms from_ms, Ms now_ms, const Times& times) const;
  // When it was last seen with a session, or began.
  Ms since_ms() const { return since_ms_; }

 private:
  struct Span {
    Ms from_ms;
    Ms to_ms;
  };
  std::optional<std::string> chance_in(const Span& span, const Times& times) const;

  Ms since_ms_ = 0;
  std::optional<Ms> open_since_ms_;
  std::optional<Ms> free_since_ms_;
  std::vector<Span> open_;  // before
  struct Try {
    Ms from_ms;
    std::optional<Ms> failed_ms;
  };
  std::vector<Try> tries_;
};

}  // namespace elastic::simulation
