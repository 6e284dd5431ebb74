#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol/session.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// Connections that carry gossip, one to an address and port at a time. Destroying it ends them all.
class GossipVisits {
 public:
  // What to gossip, asked for when a connection is there; empty: there is nothing any more.
  using What = std::function<std::optional<protocol::Introduction>()>;

  explicit GossipVisits(net::Loop& loop) : loop_(loop) {}

  // Gossips at each of these addresses, unless a visit there, or too many elsewhere, are under way. A host that takes
  // the connection and does not answer within a second is given up by the next call.
  void go(const std::vector<std::string>& addresses, std::uint16_t port, const std::string& secret, const What& what);
  void end_all() { visits_.clear(); }

 private:
  struct Visit {
    std::unique_ptr<net::Connector> connector;
    std::unique_ptr<net::Stream> stream;
    std::unique_ptr<protocol::AgentSession> session;
    std::int64_t began_ms = 0;
    bool is_over = false;
  };

  static void gossip(Visit& visit, std::unique_ptr<net::Stream> stream, const std::string& secret,
                     std::optional<protocol::Introduction> what);

  net::Loop& loop_;
  std::map<std::pair<std::string, std::uint16_t>, std::unique_ptr<Visit>> visits_;  // by address and port
};

}  // namespace elastic::transport
