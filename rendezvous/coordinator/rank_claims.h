#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/membership/roster.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::coordinator {

// Newcomers that claim the rank (--node-rank) of a connected node. Each waits until the holder of the rank is heard,
// which refutes the claim, or has gone, or has been silent for a second: both make room for the newcomer. The caller
// asks the holder (AreYouThere), ends the session of one that is silent, and lets newcomers in. Times are milliseconds
// of the coordinator's clock.
class RankClaims {
 public:
  // What follows from a newcomer's first message. If both members are empty, no connected node has its rank.
  struct Answer {
    const membership::Node* asked = nullptr;         // the holder, which is to be asked; the newcomer waits
    std::optional<protocol::Rejected> refusal = {};  // so many newcomers wait already that this one may not
  };
  Answer claim(protocol::NodeId session, const protocol::NodeJoins& message, const membership::Roster& roster,
               std::int64_t now_ms);

  // A newcomer that waits no longer.
  struct Settled {
    protocol::NodeId session = 0;
    protocol::NodeJoins message;
    std::optional<protocol::Rejected> refusal = {};  // set if the holder lives
    protocol::AgentId holder = 0;
    bool holder_is_silent = false;  // the holder is connected, but has not answered: its session is to be ended
  };
  // Removes and returns the first newcomer from `position` on that waits no longer; empty if there is none. To be
  // called with position 0, and then again with the same variable, which is moved on: what the caller does for one
  // newcomer is taken into account for those after it.
  std::optional<Settled> settle(std::size_t& position, const membership::Roster& roster, std::int64_t now_ms);

  // The newcomer's session has ended, or it leaves. Returns whether it waited.
  bool withdraw(protocol::NodeId session);
  // The job ends, and no newcomer waits any more. Returns the sessions of those that waited.
  std::vector<protocol::NodeId> dismiss_all();

  bool empty() const { return waiting_.empty(); }
  bool is_waiting(protocol::NodeId session) const;
  // When settle() is due if nothing else happens.
  std::optional<std::int64_t> deadline_ms() const;

  // Called after each event: a newcomer that waits is no node of the job yet.
  void check_invariants(const membership::Roster& roster) const;

 private:
  friend struct CoordinatorBreaker;  // for tests

  struct Waiting {
    protocol::NodeId session = 0;
    protocol::NodeJoins message;
    protocol::AgentId holder = 0;
    std::uint64_t heard_before = 0;  // the holder's messages and keep-alives before it was asked
    std::int64_t until_ms = 0;
  };
  std::vector<Waiting> waiting_;  // limits::kHeldNodes at most
};

// The ready nodes that claim the rank and were not in the last round. They came before the node that has the rank in
// that round was back.
std::vector<protocol::AgentId> newcomers_with_claim(const membership::Roster& roster, int rank);

// "node2 asks for rank 1, but node1 has it".
std::string asked_for_rank(const protocol::NodeJoins& newcomer, const membership::Node& holder);

}  // namespace elastic::coordinator
