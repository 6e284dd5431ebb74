#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// Asks by PyTorch's store protocol whether a TCPStore listens at an address. To elastic-run's own protocol such a
// server does not answer. Destroying it cancels the request; the callback may do that.
class StoreProbe {
 public:
  // The first bytes of a client of a TCPStore.
  static constexpr std::array<std::uint8_t, 5> kFirstBytes = {0x00, 0xce, 0xf7, 0x85, 0x3c};

  // `on_found` is called at most once, in a later turn of the loop, and only if a TCPStore answers.
  StoreProbe(net::Loop& loop, const std::string& address, std::uint16_t port, std::function<void()> on_found);

 private:
  void ask(std::unique_ptr<net::Stream> stream);

  std::function<void()> on_found_;
  std::string heard_;
  std::unique_ptr<net::Stream> stream_;
  std::unique_ptr<net::Connector> connector_;
};

}  // namespace elastic::transport
