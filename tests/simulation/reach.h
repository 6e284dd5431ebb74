#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/timeline.h"

namespace elastic::simulation {

// Records when an agent without a session could have reached its coordinator, and when it tried: an agent that gives up
// must have had no chance.
//
// A chance is an attempt during which the way was open for as long as the answer takes; or a time in which the way was
// open, nothing else kept the agent from trying, and it made no attempt.
class Reach {
 public:
  struct Times {
    Ms attempt_ms = 0;     // the longest time from the attempt to the welcome
    Ms pause_ms = 0;       // the longest pause between two attempts
    Ms unanswered_ms = 0;  // after it, an attempt without an answer is given up
  };

  // A new agent has started.
  void begin(Ms now_ms);
  void attached(Ms now_ms);
  void tries(Ms now_ms);
  // The last attempt has failed.
  void has_failed(Ms now_ms);
  // The lease is over: the agent has to end its workers before it may connect, and an attempt that it makes is given
  // up.
  void lease_is_over(Ms now_ms);
  // Whether both processes and both hosts run and packets go both ways.
  void is_open(bool open, Ms now_ms);
  // Bytes that are under way are lost, as by a reset.
  void is_disturbed(Ms now_ms);
  // Whether the agent may try: it has no workers that have to end first.
  void is_free(bool free, Ms now_ms);

  // The first chance since `from_ms`, in words; none if there was none.
  std::optional<std::string> chance(Ms from_ms, Ms now_ms, const Times& times) const;
  // It has had no session since `from_ms`, and no chance.
  bool is_cut_off(Ms from_ms, Ms now_ms, const Times& times) const {
    return since_ms_ < from_ms && !chance(from_ms, now_ms, times);
  }
  // When the agent last had a session, or was started.
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
    bool cut_short = false;  // it was given up before the coordinator could answer
  };
  std::vector<Try> tries_;
};

}  // namespace elastic::simulation
