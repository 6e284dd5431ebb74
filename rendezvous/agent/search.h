#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/election/next_leaders.h"
#include "rendezvous/protocol/lease.h"
#include "rendezvous/protocol/messages.h"

namespace elastic::agent {

// A process that may be, or become, the coordinator.
struct PeerPortTarget {
  std::string addresses = {};  // numeric, with spaces between them, the best first
  std::uint16_t port = 0;
  protocol::AgentId agent = 0;  // in that process; 0: not known
  bool operator==(const PeerPortTarget&) const = default;
};

// Where an agent looks for the coordinator that it has lost (docs/failover.md). First it asks at the coordinator's own
// door: a process that is gone refuses there. When the agent is free of its promise it asks the successors in turn, and
// where the nodes meet. Every door that it asks may send it elsewhere, or tell it to come back a little later.
//
// A successor that has lost the same coordinator may not be free yet, or not know it. It is asked again until it is, so
// that all agents vote for the same one. A candidate that was not elected may have had too few of the votes, while
// others had the rest. So an agent that has voted in vain first looks round whether a candidate stands at one of the
// successors: the votes gather. Times are milliseconds of the agent's clock.
class Search {
 public:
  // The coordinator in the process of this agent (0: it is on none of the nodes) has welcomed the agent.
  void meets(protocol::AgentId host) { host_ = host; }
  // It has told who comes after it.
  void knows(std::vector<protocol::NextLeader> next_leaders);
  // The node is done, and about to leave: until it is in a round again it makes no candidate anywhere, but looks round
  // for the one that the nodes which it leaves have found.
  void is_done() { is_done_ = true; }
  const std::vector<protocol::NextLeader>& next_leaders() const { return next_leaders_; }
  // The session with it has ended: the search begins, if there are successors. If a search is on, it was a candidate's.
  void begin(const protocol::LeaseTimes& times, std::int64_t now_ms);
  // A coordinator was found that may act.
  void end() { is_on_ = false; }
  bool is_on() const { return is_on_; }

  // Whom to ask next; nothing: where the nodes meet. `free_at_ms`: when the agent's promise to the coordinator that is
  // lost is over; nothing: it has promised nothing, or without an end.
  std::optional<PeerPortTarget> next(std::optional<std::int64_t> free_at_ms, std::int64_t now_ms);
  // The one asked is to be joined only if it is a coordinator, or a candidate, already.
  bool probes() const { return looked_at_.has_value(); }
  // The last one asked was the lost coordinator's own door.
  bool has_asked_the_lost() const { return asked_ == Asked::kLost; }
  // Another process, of this number, has answered there: no two listen at one port.
  bool is_replaced_by(protocol::AgentId host) const { return has_asked_the_lost() && host != 0 && host != host_; }
  // The node rank of the node of the lost coordinator, in the last round that the agent was in; nothing: it was on
  // none.
  std::optional<int> rank_of_the_lost() const;
  // Whom it has met, in the process of this agent, is not to be joined yet: it has stood in vain, and the others have
  // not had their turn since.
  bool shuns(protocol::AgentId host) const;
  // The last one asked has sent the agent elsewhere, or away for a while.
  void sent(const protocol::Redirect& redirect);

  // How long the last one asked may take to welcome the agent; nothing: as long as ever.
  std::optional<std::int64_t> patience_ms(std::int64_t now_ms) const;
  // How long it may take once it has accepted the connection; nothing: no longer than that.
  std::optional<std::int64_t> greeting_ms(std::int64_t now_ms) const;
  // When to ask again, after the last one did not welcome the agent; nothing: after the ordinary pause.
  std::optional<std::int64_t> again_at_ms(bool has_refused, std::int64_t now_ms) const;

 private:
  std::int64_t step_ms() const;
  void probe();
  void look_at_those_that_answer();
  bool has_probed() const { return to_look_at_.empty() && to_wait_for_.none(); }
  void was_looked_at(std::int64_t now_ms);
  bool comes_back(std::int64_t now_ms) const;
  std::int64_t pause_ms();
  // kRedirect: where a successor has sent the agent.
  enum class Asked : std::uint8_t { kNobody, kLost, kNextLeader, kRedirect, kMeetingPlace, kElsewhere };

  std::vector<protocol::NextLeader> next_leaders_;
  protocol::AgentId host_ = 0;
  bool is_done_ = false;
  bool is_on_ = false;
  int vain_ = 0;  // how many in a row, before this one, have ended with a candidate
  Asked asked_ = Asked::kNobody;
  int hops_ = 0;  // in a row
  protocol::LeaseTimes times_;
  std::int64_t began_ms_ = 0;
  std::int64_t asked_ms_ = 0;
  std::optional<std::int64_t> bound_until_ms_;  // it was asked while the agent was bound by its promise, until then
  std::size_t next_leader_ = 0;                 // kNextLeader: which was asked
  std::int64_t next_leader_since_ms_ = 0;       // kNextLeader: when it was asked first
  std::size_t begins_with_ = 0;                 // the first one that is asked in this search
  protocol::AgentId shunned_ = 0;               // a new start of a node, no successor: has stood in vain
  std::size_t peer_ports_opened_ = 0;           // in this search
  using Places = std::bitset<election::kMostNextLeaders + 1>;  // successors, and the meeting place as the last
  std::vector<std::size_t> to_look_at_;                        // places, the next one last
  std::optional<std::size_t> looked_at_;                       // the last one was asked for that
  Places silent_;                                              // those that did not answer then
  Places to_wait_for_;                                         // those of them that are to be looked at once more
  std::optional<election::NextLeaderDialing> dialing_;         // since the agent is free
  std::optional<PeerPortTarget> redirected_to_;                // is asked next
  std::optional<std::int64_t> retry_ms_;                       // the last one asked is asked again after so long
  std::int64_t longest_pause_ms_ = 0;                          // the next pause before a door is asked again
};

}  // namespace elastic::agent
