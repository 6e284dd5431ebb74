#include "src/process/death_notice.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

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

// The notice on its way to one listener.
class Telling {
 public:
  Telling(const SocketAddress& to, std::span<const std::uint8_t> bytes)
      : socket_(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), unsent_(bytes) {
    if (!socket_) return;
    const auto* address = reinterpret_cast<const sockaddr*>(&to.storage);
    if (connect(socket_.get(), address, to.length) != 0 && errno != EINPROGRESS) socket_ = UniqueFd();
  }

  bool is_over() const { return !socket_; }
  pollfd watched() const { return {socket_.get(), static_cast<short>(unsent_.empty() ? POLLIN : POLLOUT), 0}; }
  void go_on() { unsent_.empty() ? read() : send(); }

 private:
  void send() {
    // This reports a failed connection, too.
    const ssize_t count = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      socket_ = UniqueFd();
      return;
    }
    unsent_ = unsent_.subspan(static_cast<std::size_t>(count));
    if (unsent_.empty()) shutdown(socket_.get(), SHUT_WR);
  }
  void read() {
    std::array<std::uint8_t, 512> answer{};
    if (recv(socket_.get(), answer.data(), answer.size(), 0) <= 0) socket_ = UniqueFd();
  }

  UniqueFd socket_;  // none: it is over
  std::span<const std::uint8_t> unsent_;
};

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

void send_notice(const DeathNotice& notice, std::int64_t patience_ms) {
  const std::int64_t deadline_ms = monotonic_ms() + patience_ms;
  std::vector<Telling> tellings;
  for (const SocketAddress& to : notice.to) tellings.emplace_back(to, notice.bytes);
  for (;;) {
    std::erase_if(tellings, [](const Telling& telling) { return telling.is_over(); });
    const std::int64_t left_ms = deadline_ms - monotonic_ms();
    if (tellings.empty() || left_ms <= 0) return;
    std::vector<pollfd> watched;
    for (const Telling& telling : tellings) watched.push_back(telling.watched());
    const int ready = poll(watched.data(), watched.size(), static_cast<int>(left_ms));
    if (ready < 0 && errno != EINTR) return;
    for (std::size_t i = 0; ready > 0 && i < watched.size(); ++i) {
      if (watched[i].revents != 0) tellings[i].go_on();
    }
  }
}

}  // namespace elastic::process
