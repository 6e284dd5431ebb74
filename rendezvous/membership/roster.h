#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rendezvous/membership/ranks.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::membership {

// Where a node stands in its job.
enum class Standing : std::uint8_t {
  kReady,     // here, without processes: free for the next round
  kMember,    // in the round
  kDone,      // in the round, its workers have succeeded
  kStopping,  // told to stop; its processes may be there until it says otherwise
  kLeaving,   // told by its user to go; the same
  kLost,      // no session; its processes may be there until its lease is over
};
inline constexpr std::size_t kStandings = 6;

// A node as the coordinator knows it.
struct Node {
  protocol::AgentId agent = 0;
  std::optional<protocol::NodeId> session;  // none when it is lost
  NodeShape shape;
  std::string address;
  std::string addresses;  // NodeJoins::addresses
  std::string group;      // NodeJoins::group
  std::optional<int> claimed_rank;
  bool hosts_coordinator = false;
  std::uint64_t arrival = 0;        // order of joining
  std::int64_t last_heard_ms = 0;   // by the coordinator's clock
  std::uint64_t heard = 0;          // signs of life so far
  std::uint32_t joined_by = 0;      // NodeJoins::session of the last
  std::int64_t lease_until_ms = 0;  // of one that is lost: its end, or
  bool lease_has_ended = false;     // when its workers must be gone
  std::optional<int> seat;          // in the last round, if it was in that
  protocol::NodePlace place;        // in the round that it is in
  int leave_signal = 0;             // of one that leaves
  bool reported = false;            // what this round's phase asks of every node has come from it
  bool passed_check = false;
  bool succeeded = false;  // its workers of the last round have, though it may have been told to stop
  std::string unfit;       // why the check leaves it out; empty: it does not
  bool belongs = false;    // it has been in a round of this incarnation

  // A sign of life has come.
  void is_heard(std::int64_t now_ms) {
    last_heard_ms = now_ms;
    ++heard;
  }
  Standing standing() const { return standing_; }
  // "node 2 (10.0.0.7)", or the address alone for one that is in no round.
  std::string name() const;
  // What its losses and its exclusion are remembered under: the host, as it calls itself. Never the claimed
  // rank, which a new host takes over from one that is gone.
  std::string identity() const;

 private:
  friend class Roster;
  Standing standing_ = Standing::kReady;
};

// Who is known to a coordinator, by agent and by session, with a count of each standing. Pointers to nodes
// stay good until the node is erased.
class Roster {
 public:
  Node& add(Node node, Standing standing);
  void move(Node& node, Standing standing);
  void erase(protocol::AgentId agent);
  // The session that a node has now.
  void set_session(Node& node, std::optional<protocol::NodeId> session);

  Node* find(protocol::AgentId agent);
  Node* of_session(protocol::NodeId session);
  const Node* of_session(protocol::NodeId session) const;
  std::size_t count(Standing standing) const { return counts_[static_cast<std::size_t>(standing)]; }
  std::size_t size() const { return nodes_.size(); }
  std::map<protocol::AgentId, Node>& nodes() { return nodes_; }
  const std::map<protocol::AgentId, Node>& nodes() const { return nodes_; }

 private:
  std::map<protocol::AgentId, Node> nodes_;
  std::map<protocol::NodeId, protocol::AgentId> sessions_;
  std::array<std::size_t, kStandings> counts_{};
};

}  // namespace elastic::membership
