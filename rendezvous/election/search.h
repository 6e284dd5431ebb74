#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/election/next_leader_dialing.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"
#include "src/base/limits.h"

namespace elastic::election {

// A process that may be, or become, the coordinator.
struct PeerTarget {
  std::string addresses = {};  // numeric, with spaces between them, the best first
  std::uint16_t port = 0;
  protocol::AgentId agent = 0;  // in that process; 0: not known
  bool operator==(const PeerTarget&) const = default;
};

// Where an agent looks for the coordinator that it has lost (docs/failover.md). First it asks the coordinator's own
// peer port, which refuses if the process is gone. When the agent's vote has ended it asks the next leaders in turn,
// and discovery. Whatever it asks may redirect it, or tell it to come back a little later.
//
// A next leader that has lost the same coordinator may still be bound by its vote, or not know of the loss. It is asked
// again until it is free, so that all agents vote for the same one. After a split vote the agent first probes whether
// one of the next leaders is a candidate already, so that the votes gather. Times are milliseconds of the agent's
// clock.
class Search {
 public:
  // The coordinator in the process of this agent (0: it is on none of the nodes) has welcomed the agent.
  void meets(protocol::AgentId host) { host_ = host; }
  // The coordinator has told its next leaders.
  void knows(std::vector<protocol::NextLeader> next_leaders);
  // The node is done, and about to leave: until it is in a round again it makes no process a candidate, but probes for
  // the coordinator that the other nodes have found.
  void is_done() { is_done_ = true; }
  const std::vector<protocol::NextLeader>& next_leaders() const { return next_leaders_; }
  // The session with the coordinator has ended: the search begins, if there are next leaders. If a search is on, the
  // session was with a candidate.
  void begin(const protocol::LeaseTimes& times, std::int64_t now_ms);
  // A coordinator that may act was found.
  void end() { is_on_ = false; }
  bool is_on() const { return is_on_; }

  // The process to ask next; empty: discovery. `free_at_ms`: when the agent's vote for the lost coordinator ends;
  // empty: it has never voted, or its vote has no end.
  std::optional<PeerTarget> next(std::optional<std::int64_t> free_at_ms, std::int64_t now_ms);
  // The process asked is to be joined only if it is a coordinator, or a candidate, already.
  bool probes() const { return probed_.has_value(); }
  // The last one asked was the lost coordinator's own peer port.
  bool has_asked_the_lost() const { return asked_ == Asked::kLost; }
  // Another process, of this number, has answered there: no two listen at one port.
  bool is_replaced_by(protocol::AgentId host) const { return has_asked_the_lost() && host != 0 && host != host_; }
  // The lost coordinator's node rank in the last round that the agent was in; empty: it was on none of the nodes.
  std::optional<int> rank_of_the_lost() const;
  // The candidate in the process of this agent is not to be joined yet: it has campaigned without enough votes, and the
  // others have not had their turn since.
  bool shuns(protocol::AgentId host) const;
  // The last one asked has redirected the agent, or sent it away for a while.
  void sent(const protocol::Redirect& redirect);

  // How long the last one asked may take to welcome the agent; empty: as long as always.
  std::optional<std::int64_t> patience_ms(std::int64_t now_ms) const;
  // How long it may take once it has accepted the connection; empty: no longer than patience_ms().
  std::optional<std::int64_t> greeting_ms(std::int64_t now_ms) const;
  // When to ask again, after the last one did not welcome the agent; empty: after the ordinary pause.
  std::optional<std::int64_t> again_at_ms(bool has_refused, std::int64_t now_ms) const;

 private:
  std::int64_t step_ms() const;
  void probe();
  void probe_those_that_answer();
  bool has_probed() const { return to_probe_.empty() && to_wait_for_.none(); }
  void was_probed(std::int64_t now_ms);
  bool comes_back(std::int64_t now_ms) const;
  std::int64_t pause_ms();
  // kRedirect: where a next leader has redirected the agent.
  enum class Asked : std::uint8_t { kNobody, kLost, kNextLeader, kRedirect, kDiscovery, kElsewhere };

  std::vector<protocol::NextLeader> next_leaders_;
  protocol::AgentId host_ = 0;
  bool is_done_ = false;
  bool is_on_ = false;
  int split_votes_ = 0;  // how many searches in a row, before this one, have ended with a candidate
  Asked asked_ = Asked::kNobody;
  int hops_ = 0;  // redirects in a row
  protocol::LeaseTimes times_;
  std::int64_t began_ms_ = 0;
  std::int64_t asked_ms_ = 0;
  std::optional<std::int64_t> bound_until_ms_;  // asked_ was asked while the agent was bound by its vote, until then
  std::size_t next_leader_ = 0;                 // kNextLeader: which was asked
  std::int64_t next_leader_since_ms_ = 0;       // kNextLeader: when it was asked first
  std::size_t begins_with_ = 0;                 // the first one that is asked in this search
  protocol::AgentId shunned_ = 0;      // a new start of a node, no next leader, that campaigned without enough votes
  std::size_t peer_ports_opened_ = 0;  // in this search
  using Places = std::bitset<limits::kNextLeaders + 1>;  // the next leaders, and discovery as the last
  std::vector<std::size_t> to_probe_;                    // places, the next one last
  std::optional<std::size_t> probed_;                    // the place that was probed last
  Places silent_;                                        // those that did not answer a probe
  Places to_wait_for_;                                   // those of them that are to be probed once more
  std::optional<NextLeaderDialing> dialing_;             // set when the agent is free
  std::optional<PeerTarget> redirected_to_;              // is asked next
  std::optional<std::int64_t> retry_ms_;                 // the last one asked is asked again after so long
  std::int64_t longest_pause_ms_ = 0;                    // the next pause before a peer port is asked again
};

}  // namespace elastic::election
