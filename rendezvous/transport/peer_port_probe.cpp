#include "rendezvous/transport/peer_port_probe.h"

#include <algorithm>
#include <utility>

#include "rendezvous/protocol/lease.h"
#include "src/net/limits.h"

namespace elastic::transport {

PeerPortProbe::PeerPortProbe(net::Loop& loop, const std::vector<std::string>& addresses, std::uint16_t port,
                             std::function<void(std::string address)> on_done)
    : on_done_(std::move(on_done)), empty_(loop) {
  left_ = std::min(addresses.size(), limits::kAddressesOfName);
  if (left_ == 0) empty_.start(0, [this] { std::exchange(on_done_, {})({}); });
  for (std::size_t i = 0; i < left_; ++i) {
    connectors_.push_back(
        std::make_unique<net::Connector>(loop, addresses[i], port, protocol::LeaseTimes::kPeerPortMs,
                                         [this, address = addresses[i]](Result<std::unique_ptr<net::Stream>> stream) {
                                           if (!stream) return failed();
                                           const auto done = std::exchange(on_done_, {});
                                           if (done) done(address);
                                         }));
  }
}

void PeerPortProbe::failed() {
  if (--left_ > 0 || !on_done_) return;
  std::exchange(on_done_, {})({});
}

}  // namespace elastic::transport
