#include "src/process/farewell.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "src/base/unique_fd.h"
#include "src/process/clock.h"

namespace elastic::process {
namespace {

template <typename Address>
SocketAddress held(const Address& address) {
  SocketAddress out;
  static_assert(sizeof address <= sizeof out.storage);
  std::memcpy(&out.storage, &address, sizeof address);
  out.length = sizeof address;
  return out;
}

// Waits for the events; false at the deadline.
bool wait_for(int socket, short events, std::int64_t deadline_ms) {
  for (;;) {
    const std::int64_t left_ms = deadline_ms - monotonic_ms();
    if (left_ms <= 0) return false;
    pollfd watched{socket, events, 0};
    const int ready = poll(&watched, 1, static_cast<int>(left_ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool send_all(int socket, std::span<const std::uint8_t> bytes, std::int64_t deadline_ms) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (errno != EAGAIN || !wait_for(socket, POLLOUT, deadline_ms)) {
      return false;  // send() reports a failed connection, too
    }
  }
  return true;
}

}  // namespace

std::optional<SocketAddress> socket_address(const std::string& address, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) return held(v4);
  const std::size_t scope_at = std::min(address.find('%'), address.size());
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, address.substr(0, scope_at).c_str(), &v6.sin6_addr) != 1) return {};
  if (scope_at < address.size()) {
    v6.sin6_scope_id = if_nametoindex(address.c_str() + scope_at + 1);
    if (v6.sin6_scope_id == 0) return {};
  }
  return held(v6);
}

void say(const Farewell& word, std::int64_t patience_ms) {
  const std::int64_t deadline_ms = monotonic_ms() + patience_ms;
  const UniqueFd socket(::socket(word.to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const auto* to = reinterpret_cast<const sockaddr*>(&word.to.storage);
  if (connect(socket.get(), to, word.to.length) != 0) {
    if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, deadline_ms)) return;
  }
  if (!send_all(socket.get(), word.bytes, deadline_ms)) return;
  shutdown(socket.get(), SHUT_WR);
  std::array<std::uint8_t, 512> answer{};
  while (wait_for(socket.get(), POLLIN, deadline_ms)) {
    if (recv(socket.get(), answer.data(), answer.size(), 0) <= 0) return;
  }
}

}  // namespace elastic::process
