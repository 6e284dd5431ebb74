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

// What happens to an agent beside what happens to its life cycle.
struct LinkConnected {
  protocol::Nonce nonce{};                 // random
  std::optional<bool> local = {};          // whether the coordinator is in this process, where that is known only now
  std::optional<std::string> secret = {};  // of the job, where that is known only now
};
struct LinkBroken {
  std::string why;  // as a clause: "connection refused", "it was reset"
};
struct LinkReceived {
  protocol::ByteString bytes;
};
struct LinkTimerFired {};
using AgentEvent = std::variant<Event, LinkConnected, LinkBroken, LinkReceived, LinkTimerFired>;

// What it wants done beside what its life cycle does. There is one connection at a time: Connect is answered by
// LinkConnected or LinkBroken, Disconnect by nothing, and nothing comes of a connection after it.
struct StartLinkTimer {
  std::int64_t delay_ms = 0;  // replaces the one that runs
};
// Link::Deliver is for the log only: what follows of the message stands behind it.
using AgentEffect =
    std::variant<Effect, Link::Connect, Link::Disconnect, Link::Write, Link::Deliver, Link::Log, StartLinkTimer>;
using AgentEffects = std::vector<AgentEffect>;

// One node of a job over many: its life cycle, tied to the coordinator by a link. ToCoordinator is not among
// its effects; what the coordinator says does not come as an event.
class Agent {
 public:
  Agent(NodeSettings node, LinkSettings link) : lifecycle_(std::move(node)), link_(std::move(link)) {}

  // `now_ms` is a monotonic clock's milliseconds, one that stands still for nothing.
  AgentEffects on_event(const AgentEvent& event, std::int64_t now_ms);

  const Lifecycle& lifecycle() const { return lifecycle_; }
  const Link& link() const { return link_; }
  // What it waits for, as the user is to be told.
  std::optional<Waiting> waiting() const;

 private:
  Link::Owner owner() const;
  void to_lifecycle(const Event& event, std::int64_t now_ms, AgentEffects& out);
  void from_link(Link::Effects effects, std::int64_t now_ms, AgentEffects& out);
  void delivered(const protocol::CoordinatorMessage& message, std::int64_t now_ms, AgentEffects& out);
  protocol::NodeJoins joins();

  Lifecycle lifecycle_;
  Link link_;
  std::uint32_t sessions_ = 0;  // opened so far
  bool must_be_idle_ = false;   // before the next session
  bool ended_ = false;
  std::optional<std::int64_t> timer_at_ms_;
};

}  // namespace elastic::agent
