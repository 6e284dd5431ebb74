#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.h"
#include "rendezvous/transport/coordinator_server.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "rendezvous/transport/service.h"
#include "src/net/loop.h"

namespace elastic::transport {

// This node's peer port, at which it can come to host the coordinator, unless discovery has a server in this process
// already.
class PeerServer {
 public:
  // `settings` outlive it. `own` is the agent of this node.
  PeerServer(net::Loop& loop, const RendezvousSettings& settings, protocol::AgentId own)
      : loop_(loop), settings_(settings), own_(own) {}

  // Opens it at the first of these ports that is free, or at any; false where that fails. `on_lead`: as in
  // CoordinatorServer's settings.
  bool open(const std::vector<std::uint16_t>& ports, const std::string& secret, std::function<void()> on_lead);
  // Null before.
  CoordinatorServer* server() const { return server_.get(); }
  // These addresses at this port are this very server.
  bool is_at(const std::vector<std::string>& addresses, std::uint16_t port) const;
  // The agent of this node has a session there. True the first time.
  bool note_session();
  // It has had one.
  bool hosts() const { return hosts_; }
  // Tells `here`, the server in this process, if there is one, what the node's agent knows of the coordinator, where
  // that is new to it.
  void tell_facts(CoordinatorServer* here, const PeerFacts& facts);

 private:
  net::Loop& loop_;
  const RendezvousSettings& settings_;
  protocol::AgentId own_;
  std::unique_ptr<CoordinatorServer> server_;
  bool hosts_ = false;
  PeerFacts facts_;
  const CoordinatorServer* told_ = nullptr;  // the server that has got facts_
};

}  // namespace elastic::transport
