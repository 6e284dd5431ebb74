#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rendezvous/protocol/lease.h"

namespace elastic::election {

// The order in which an agent that has lost its coordinator dials: the next leaders in turn, one every kStepMs, for 2T.
// Each turn begins with the first, so that all agents find the same one. After that the agent makes the ordinary pauses
// between two attempts, and each attempt takes the next one in turn. Times are milliseconds of the agent's clock.
class NextLeaderDialing {
 public:
  static constexpr std::int64_t kStepMs = 250;

  // `count`: how many next leaders there are, at least one.
  NextLeaderDialing(std::size_t count, const protocol::LeaseTimes& times, std::int64_t lost_ms)
      : count_(count), hurries_until_ms_(lost_ms + times.search_ms()) {}

  // The next leader to dial now, as an index in the list. Each call moves on to the next one.
  std::size_t dial() { return next_++ % count_; }
  // When to dial the next one if the one that was dialled at `dialled_ms` has not welcomed the agent by then; at once
  // if it has refused. Empty: after the ordinary pause.
  std::optional<std::int64_t> again_at_ms(std::int64_t dialled_ms, bool has_refused, std::int64_t now_ms) const;

 private:
  std::size_t count_;
  std::int64_t hurries_until_ms_;
  std::size_t next_ = 0;
};

}  // namespace elastic::election
