#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::transport {

// Asks, in PyTorch's own tongue, whether a TCPStore serves at an address: to ours such a server says nothing.
// Destroying it, also from within its callback's callers, gives it up.
class StoreProbe {
 public:
  // By which a client of a TCPStore is known.
  static constexpr std::array<std::uint8_t, 5> kItsFirstWord = {0x00, 0xce, 0xf7, 0x85, 0x3c};

  // `on_found` is called at most once, in a later turn of the loop, and only if one does.
  StoreProbe(net::Loop& loop, const std::string& address, std::uint16_t port, std::function<void()> on_found);

 private:
  void ask(std::unique_ptr<net::Stream> stream);

  std::function<void()> on_found_;
  std::string heard_;
  std::unique_ptr<net::Stream> stream_;
  std::unique_ptr<net::Connector> connector_;
};

}  // namespace elastic::transport
