#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rendezvous/membership/ranks.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/check_pace.h"

namespace elastic::membership {

enum class MemberState : std::uint8_t {
  kReady,     // connected and without workers: free for the next round
  kMember,    // in the round
  kDone,      // in the round; its workers have succeeded
  kStopping,  // told to stop its workers, which may run until it reports that they have ended
  kLeaving,   // told to leave by a signal; its workers may run like those of kStopping
  kLost,      // without a session; its workers may run until its lease is over
};
inline constexpr std::size_t kMemberStates = 6;

// A node as the coordinator knows it.
struct Node {
  protocol::AgentId agent = 0;
  std::optional<protocol::NodeId> session;  // empty if the node is lost
  NodeShape shape;
  std::string address;
  std::string addresses;                                  // NodeJoins::addresses
  std::string group;                                      // NodeJoins::group
  std::uint16_t peer_port = 0;                            // NodeJoins::peer_port
  std::optional<protocol::TrainingPorts> training_ports;  // of its last NodeJoins or NodeStopped
  std::optional<int> claimed_rank;
  bool hosts_coordinator = false;
  std::uint64_t arrival = 0;       // its number in the order of joining
  std::int64_t last_heard_ms = 0;  // when its last message or keep-alive came, by the coordinator's clock
  std::uint64_t heard = 0;         // messages and keep-alives so far
  std::uint32_t joined_by = 0;     // NodeJoins::session of its last NodeJoins
  std::optional<int> slot;         // in the last round, if it was in that
  protocol::NodePlace place;       // in the round that it is in
  protocol::NodeLeaves leaves;     // what it said when it was told to leave
  // The same, of a node that said it to a candidate, for which it votes until that is elected; or, with signal 0, while
  // the coordinator's node is about to leave, too.
  std::optional<protocol::NodeLeaves> leaves_later;
  bool passed_check = false;
  bool succeeded = false;  // its workers of the last round succeeded, though it may have been told to stop
  std::string unhealthy;   // why it is out of the job once its round has ended; empty: it is not
  bool belongs = false;    // it has been in a round of this incarnation
  // The last progress that its workers reported, and when that came; maybe of an earlier round.
  std::optional<protocol::NodeProgress> progress = {};
  std::int64_t progress_ms = 0;

  void is_heard(std::int64_t now_ms) {
    last_heard_ms = now_ms;
    ++heard;
  }
  MemberState member_state() const { return member_state_; }
  bool offers_peer_port() const { return peer_port != 0 && !addresses.empty(); }
  // "node 2 (10.0.0.7)", or the address alone if the node is in no round.
  std::string name() const;
  // The key of its losses and of its eviction: the name of its host. It is never the claimed rank, which a new host
  // takes over from one that is gone.
  std::string identity() const;

 private:
  friend class Roster;
  MemberState member_state_ = MemberState::kReady;
};

// The nodes that a coordinator knows, by agent and by session, with a count of each state. A pointer to a node is valid
// until the node is erased.
class Roster {
 public:
  Node& add(Node node, MemberState member_state);
  void move(Node& node, MemberState member_state);
  void erase(protocol::AgentId agent);
  // Sets the present session of a node; empty if it has none.
  void set_session(Node& node, std::optional<protocol::NodeId> session);

  // The node of an agent that is in the roster. Another agent is a mistake of the caller, and ends the process.
  Node& at(protocol::AgentId agent);
  const Node& at(protocol::AgentId agent) const;
  Node* find(protocol::AgentId agent);
  Node* of_session(protocol::NodeId session);
  const Node* of_session(protocol::NodeId session) const;
  std::size_t count(MemberState member_state) const { return counts_[static_cast<std::size_t>(member_state)]; }
  std::size_t size() const { return nodes_.size(); }
  // How many nodes were added so far.
  std::uint64_t arrivals() const { return arrivals_; }
  std::map<protocol::AgentId, Node>& nodes() { return nodes_; }
  const std::map<protocol::AgentId, Node>& nodes() const { return nodes_; }

  // Counts and sessions match the nodes.
  void check_invariants() const;
  // Whether all nodes are to be checked after this event.
  bool check_is_due() { return pace_.is_due(nodes_.size()); }

 private:
  friend struct RosterBreaker;  // for tests

  std::map<protocol::AgentId, Node> nodes_;
  std::map<protocol::NodeId, protocol::AgentId> sessions_;
  std::array<std::size_t, kMemberStates> counts_{};
  std::uint64_t arrivals_ = 0;
  CheckPace<4> pace_;
};

}  // namespace elastic::membership
