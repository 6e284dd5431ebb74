#include "rendezvous/transport/gossip_sender.h"

#include <algorithm>
#include <utility>

#include "rendezvous/protocol/lease.h"
#include "rendezvous/transport/coordinator_server.h"
#include "src/net/local_host.h"

namespace elastic::transport {
namespace {

// So many look-ups of an endpoint that leads to this process alone are left out, but not all: it may change.
constexpr int kRests = 10;

}  // namespace

GossipSender::GossipSender(net::Loop& loop, const RendezvousSettings& settings, Discovery::Leader leader,
                           Discovery::Secret secret)
    : settings_(settings),
      leader_(std::move(leader)),
      secret_(std::move(secret)),
      timer_(loop),
      visits_(loop),
      resolver_(loop) {
  resolve_endpoint();
}

void GossipSender::resolve_endpoint() {
  const protocol::LeaseTimes lease{settings_.loss_timeout_ms};
  timer_.start(std::max(lease.renewal_ms(), kShortestLookMs), [this] { resolve_endpoint(); });
  if (!gossip()) return visits_.end_all();
  if (rests_ > 0) {
    --rests_;
    return;
  }
  resolver_.resolve(settings_.host, kResolveMs, [this](Result<std::vector<std::string>> found) {
    const CoordinatorServer* const server = leader_();
    if (found && server != nullptr) go_to(*found, server->port());
  });
}

std::optional<protocol::Introduction> GossipSender::gossip() const {
  const CoordinatorServer* const server = leader_();
  return server == nullptr ? std::nullopt : server->gossip(settings_.job);
}

void GossipSender::go_to(std::vector<std::string> addresses, std::uint16_t own_port) {
  if (own_port == settings_.port) std::erase_if(addresses, [](const auto& address) { return net::is_ours(address); });
  if (addresses.empty()) rests_ = kRests;
  visits_.go(addresses, settings_.port, secret_(), [this] { return gossip(); });
}

}  // namespace elastic::transport
