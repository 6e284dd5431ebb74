#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// Finds out by which of its addresses a node can be reached at a port: connects to all of them at once, and closes the
// connections again. Destroying it, also from within its callback, cancels it.
class PeerPortProbe {
 public:
  // `on_done` is called once, in a later turn of the loop, with the address that answered first; with an empty one if
  // none has after protocol::LeaseTimes::kPeerPortMs. At most the first limits::kAddressesOfName addresses are tried.
  PeerPortProbe(net::Loop& loop, const std::vector<std::string>& addresses, std::uint16_t port,
                std::function<void(std::string address)> on_done);

 private:
  void failed();

  std::function<void(std::string)> on_done_;
  std::size_t left_ = 0;  // attempts that have not ended
  net::Timer empty_;      // there is no address
  std::vector<std::unique_ptr<net::Connector>> connectors_;
};

}  // namespace elastic::transport
