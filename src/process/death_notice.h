#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/base/limits.h"

namespace elastic::process {

// The greatest length of a death notice, in bytes: that of what an agent session may send before it is introduced.
inline constexpr std::size_t kDeathNoticeBytes = limits::kAgentHelloBytes;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// Reads a numeric address ("10.0.0.1", "::1", "fe80::1%eth0"). Returns nothing if it is not numeric.
std::optional<SocketAddress> socket_address(const std::string& address, std::uint16_t port);

// The most addresses of a death notice: the coordinator's, or those of the next leaders.
inline constexpr std::size_t kDeathNoticeListeners = limits::kNextLeaders;

struct DeathNotice {
  std::span<const SocketAddress> to;
  std::span<const std::uint8_t> bytes;
};

// Connects to all at once, sends, and waits until the other sides close their connections, which shows that they have
// read everything: where this process is PID 1 of a container, the container's network ends with it. Takes at most
// `patience_ms`. Failures are not reported, for nothing is left of the job that could act on them.
void send_notice(const DeathNotice& notice, std::int64_t patience_ms);

}  // namespace elastic::process
