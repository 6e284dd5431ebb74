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

// As many as a message has room for, and enough that one of them survives what a job survives.
inline constexpr std::size_t kMostNextLeaders = limits::kNextLeaders;

// The successors that go with a round, in the order in which they are dialled. Neighbours in the list are of different
// groups where there are several, other groups than the coordinator's come first, and within a group the lowest node
// rank. The coordinator's own node comes last, since it is most likely lost with the coordinator. `nodes` is in the
// order of the node ranks; nodes without a group count as a group each.
std::vector<NextLeader> choose_next_leaders(const std::vector<NextLeaderCandidate>& nodes);

// Whom an agent dials that has lost its coordinator: the successors in turn, one every kStepMs, for 2T; so that all
// agents find the same one, each turn begins with the first. After that the agent goes on with the ordinary pauses
// between two attempts, and each attempt takes the next successor. Times are milliseconds of the agent's clock.
class NextLeaderDialing {
 public:
  static constexpr std::int64_t kStepMs = 250;

  // `count`: of the successors, at least one.
  NextLeaderDialing(std::size_t count, const protocol::LeaseTimes& times, std::int64_t lost_ms)
      : count_(count), hurries_until_ms_(lost_ms + times.search_ms()) {}

  // Which successor is dialled now, as an index in the list. The next call takes the next one.
  std::size_t dial() { return next_++ % count_; }
  // When the next one is to be dialled if the one that was dialled at `dialled_ms` has not welcomed the agent by then;
  // at once if it has refused. Nothing: after the ordinary pause.
  std::optional<std::int64_t> again_at_ms(std::int64_t dialled_ms, bool has_refused, std::int64_t now_ms) const;

 private:
  std::size_t count_;
  std::int64_t hurries_until_ms_;
  std::size_t next_ = 0;
};

}  // namespace elastic::election
