#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/election_parts.h"
#include "rendezvous/protocol/lease.h"
#include "src/base/limits.h"

namespace elastic::election {

using protocol::NextLeader;

// A node of a round.
struct NextLeaderCandidate {
  NextLeader node = {};
  std::string group = {};  // --node-group: nodes of one group tend to fail together; empty: it has none
  bool can_be_reached = true;
  bool hosts_coordinator = false;
};

// As many next leaders as a message has room for, and enough that one of them survives what a job survives.
inline constexpr std::size_t kMostNextLeaders = limits::kNextLeaders;

// The next leaders that go with a round, in the order in which they are dialled. Neighbours in the list are of
// different groups where there are several, other groups than the coordinator's come first, and within a group the
// lowest node rank. The coordinator's own node comes last, since it is most likely lost with the coordinator. `nodes`
// is in the order of the node ranks; a node without a group counts as a group of its own.
std::vector<NextLeader> choose_next_leaders(const std::vector<NextLeaderCandidate>& nodes);

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
