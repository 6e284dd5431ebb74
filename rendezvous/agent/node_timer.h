#pragma once

#include <cstdint>
#include <optional>

#include "rendezvous/agent/lifecycle_events.h"

namespace elastic::agent {

// When the one timer of a node's life cycle fires. It follows StartTimer and StopTimer, and stands still while SIGTSTP
// has stopped the node. Times are milliseconds of the clock of Lifecycle::on_event.
class NodeTimer {
 public:
  // The life cycle wants these effects done; the last StartTimer or StopTimer among them counts. No timer fires in the
  // past.
  void follow(const Effects& effects, std::int64_t now_ms);
  void fired() { until_ms_.reset(); }
  // When the timer fires; none: it does not run.
  std::optional<std::int64_t> until_ms() const { return until_ms_; }
  // The timer runs, or will run on when a pause ends.
  bool is_set() const { return until_ms_ || rest_ms_; }

  // Stops the timer if it runs, and keeps what is left of it for resume().
  void pause(std::int64_t now_ms, Effects& out);
  // Starts the timer with what was left of it at the last pause(); does nothing if it did not run then.
  void resume(Effects& out);
  // Lets a timer that runs fire in this many milliseconds at the latest.
  void shorten(std::int64_t longest_ms, std::int64_t now_ms, Effects& out) const;

 private:
  std::optional<std::int64_t> until_ms_;
  std::optional<std::int64_t> rest_ms_;  // what was left of the timer at the last pause
};

}  // namespace elastic::agent
