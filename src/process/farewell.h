#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/base/limits.h"

namespace elastic::process {

// A word's length, in bytes: what an agent session may send before it has introduced itself.
inline constexpr std::size_t kFarewellBytes = limits::kAgentHelloBytes;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// Of a numeric address ("10.0.0.1", "::1", "fe80::1%eth0"); none if it is not one.
std::optional<SocketAddress> socket_address(const std::string& address, std::uint16_t port);

struct Farewell {
  SocketAddress to;
  std::span<const std::uint8_t> bytes;
};

// Connects, sends, and waits until the other side, which has read it then, closes: where this process is a
// container's first, its network ends with it. All of that in at most `patience_ms`; failures are silent, for
// nobody is left who could do anything about them.
void say(const Farewell& word, std::int64_t patience_ms);

}  // namespace elastic::process
