#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/session.h"
#include "rendezvous/transport/discovery.h"
#include "rendezvous/transport/gossip_visits.h"
#include "rendezvous/transport/rendezvous_settings.h"
#include "src/net/loop.h"
#include "src/net/names.h"

namespace elastic::transport {

// While this process has the coordinator of its node's job, gossips about it to whatever listens at the endpoint,
// several times in each loss timeout, unless the endpoint leads here. Otherwise a host that comes back under the
// endpoint's name, and knows nothing of the job, would begin it anew.
class GossipSender {
 public:
  // `settings` must outlive it.
  GossipSender(net::Loop& loop, const RendezvousSettings& settings, Discovery::Leader leader, Discovery::Secret secret);

 private:
  void resolve_endpoint();
  void go_to(std::vector<std::string> addresses, std::uint16_t own_port);
  std::optional<protocol::Introduction> gossip() const;

  const RendezvousSettings& settings_;
  Discovery::Leader leader_;
  Discovery::Secret secret_;
  net::Timer timer_;
  int rests_ = 0;  // look-ups that are left out
  GossipVisits visits_;
  net::Resolver resolver_;
};

}  // namespace elastic::transport
