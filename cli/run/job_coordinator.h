#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/agent/agent.h"
#include "rendezvous/discovery/hosting.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"
#include "src/status/lead.h"

namespace elastic::transport {
class CoordinatorConnection;
class CoordinatorServer;
}  // namespace elastic::transport

namespace elastic::run {

struct LaunchSettings;

// The job's coordinator as this node's agent reaches it: in this process where the job has one node, over the network
// otherwise; then it may be hosted by this process, too.
class JobCoordinator {
 public:
  struct Handlers {
    // What becomes of the connection, what the coordinator says, and the link's timer.
    std::function<void(agent::AgentEvent)> on_event;
    // The coordinator is in this process from now on; called by the constructor for that of a job of one node.
    std::function<void(transport::CoordinatorServer&)> on_hosting;
    // This node's peer port is open, at which it can come to host the coordinator.
    std::function<void(transport::CoordinatorServer&)> on_peer_server;
    // Gets connections to the worker store where the store has the coordinator's port.
    std::function<void(std::unique_ptr<net::Stream>, std::span<const std::uint8_t>)> to_store;
  };
  // `settings` outlive it. `own` is the agent of this node.
  JobCoordinator(net::Loop& loop, const LaunchSettings& settings, protocol::AgentId own, Handlers handlers);
  ~JobCoordinator();

  // What the agent's `link` wants done.
  void perform(const agent::Link::Connect& effect, const agent::Link& link);
  void perform(const agent::Link::Disconnect& effect);
  void perform(const agent::Link::Write& effect);
  void perform(const agent::StartLinkTimer& effect);

  // This node's peer port says from now on what the agent's `link` knows of the coordinator.
  void renew_peer_facts(const agent::Link& link, std::int64_t now_ms);

  // The agent votes for a coordinator in this process that is no more.
  bool is_own_over(const agent::Link& link) const;

  // Where the coordinator was reached last; none if it is in this process.
  struct Address {
    std::string address;  // numeric
    std::uint16_t port = 0;
    bool operator==(const Address&) const = default;
  };
  std::optional<Address> address_elsewhere() const;
  // Where clients find the coordinator that ask for it here. `is_over`: the agent has its job result.
  status::Whereabouts whereabouts(const agent::Link& link, bool is_over) const;
  // The addresses that are told when this process has ended: the coordinator's, or the next leaders' if it ends, too.
  std::vector<Address> listeners(const agent::Link& link) const;
  // The coordinator is in this process.
  bool is_hosted_here() const;
  // The coordinator in this process that other nodes connect to; null if there is none.
  transport::CoordinatorServer* server() const;
  // Takes back what leads other nodes to server(); `done` is called when that has been tried.
  void withdraw(std::function<void()> done);
  // See CoordinatorConnection.
  discovery::EndpointAdvice advice() const;
  // The endpoint or the file of discovery does not answer, and keeps this process from ending.
  bool discovery_hangs() const;

 private:
  void remember(std::optional<Address> elsewhere);

  std::function<void(agent::AgentEvent)> on_event_;
  net::Timer link_timer_;
  std::string job_;
  bool has_peer_server_;
  std::optional<Address> elsewhere_;  // address_elsewhere() when the agent was attached last
  bool is_elsewhere_on_this_host_ = false;
  // One of the two is there.
  std::unique_ptr<transport::CoordinatorServer> own_;
  std::unique_ptr<transport::CoordinatorConnection> connection_;
};

}  // namespace elastic::run
