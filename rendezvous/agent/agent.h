#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/agent/link.h"

namespace elastic::agent {

// --- Events: what happens to an agent beside the events of its life cycle. ---

struct LinkConnected {
  protocol::Nonce nonce{};                 // random, another for each connection
  std::optional<bool> local = {};          // whether the coordinator is in this process; none: as LinkSettings say
  std::optional<std::string> secret = {};  // the job's; none: the one of LinkSettings
  std::uint16_t peer_port = 0;             // NodeJoins::peer_port
  bool is_same_place = true;               // the coordinator of the last session was reached there
  bool may_begin = true;                   // protocol::Introduction
};
// The connection could not be made, or has ended.
struct LinkBroken {
  std::string why;           // a clause: "connection refused", "it was reset"
  bool has_refused = false;  // nothing listens any more where the last session was
  bool is_further = false;   // a further host of the endpoint was asked, which need not be there
};
struct LinkReceived {
  protocol::ByteString bytes;
};
struct LinkTimerFired {};  // the timer of StartLinkTimer
// Link::votes_for_own() holds, and the job's coordinator in this process is gone. It may have resigned while the agent
// had no session with it.
struct OwnCoordinatorOver {};
// The coordinator's messages come in the bytes of LinkReceived.
using AgentEvent = std::variant<Event, LinkConnected, LinkBroken, LinkReceived, LinkTimerFired, OwnCoordinatorOver>;

// --- Effects: what an agent wants done beside the effects of its life cycle. ---

// There is one connection at a time: Connect is answered by LinkConnected or LinkBroken, Disconnect by nothing, and no
// event of the connection follows it.
struct StartLinkTimer {
  std::int64_t delay_ms = 0;  // the timer that runs is replaced
};
// Messages to the coordinator are in the bytes of Link::Write: ToCoordinator is not among these. Link::Deliver is for
// the log: the effects of the message follow it.
using AgentEffect =
    std::variant<Effect, Link::Connect, Link::Disconnect, Link::Write, Link::Deliver, Link::Log, StartLinkTimer>;
using AgentEffects = std::vector<AgentEffect>;

// One node of a job: its life cycle, tied to the coordinator by a link.
class Agent {
 public:
  Agent(NodeSettings node, LinkSettings link) : lifecycle_(std::move(node)), link_(std::move(link)) {}

  // `now_ms`: milliseconds of a monotonic clock that goes on while the machine is suspended.
  AgentEffects on_event(const AgentEvent& event, std::int64_t now_ms);

  const Lifecycle& lifecycle() const { return lifecycle_; }
  const Link& link() const { return link_; }
  // What the node waits for, for the user.
  std::optional<Waiting> waiting() const;

 private:
  bool has_ended() const { return phase_ == Phase::kEnded; }
  Link::Owner owner() const;
  void to_lifecycle(const Event& event, std::int64_t now_ms, AgentEffects& out);
  void perform(Link::Effects effects, std::int64_t now_ms, AgentEffects& out);
  void deliver(const protocol::CoordinatorMessage& message, std::int64_t now_ms, AgentEffects& out);
  protocol::NodeJoins joins();

  Lifecycle lifecycle_;
  Link link_;
  std::uint32_t sessions_ = 0;   // how many were opened
  std::uint16_t peer_port_ = 0;  // NodeJoins::peer_port
  bool must_be_idle_ = false;    // the next session is opened when no process of a round is left
  enum class Phase : std::uint8_t { kToBegin, kBegun, kEnded };
  Phase phase_ = Phase::kToBegin;
  std::optional<std::int64_t> timer_at_ms_;
};

}  // namespace elastic::agent
