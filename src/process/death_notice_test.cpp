#include "src/process/death_notice.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/process/clock.h"

namespace elastic::process {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Listening {
  UniqueFd socket;
  SocketAddress address;
};

// Listens on a free port of 127.0.0.1.
Listening listening(int backlog) {
  Listening out{UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), *socket_address("127.0.0.1", 0)};
  REQUIRE(bind(out.socket.get(), reinterpret_cast<sockaddr*>(&out.address.storage), out.address.length) == 0);
  REQUIRE(getsockname(out.socket.get(), reinterpret_cast<sockaddr*>(&out.address.storage), &out.address.length) == 0);
  if (backlog >= 0) REQUIRE(listen(out.socket.get(), backlog) == 0);
  return out;
}

// Reads everything from one connection until its end.
Bytes read_connection(int listener, std::atomic<bool>& is_read) {
  const UniqueFd connection(accept(listener, nullptr, nullptr));
  Bytes out;
  std::uint8_t buffer[1000];
  for (ssize_t count = 0; (count = read(connection.get(), buffer, sizeof buffer)) > 0;) {
    out.insert(out.end(), buffer, buffer + count);
  }
  is_read = true;  // set before the connection is closed
  return out;
}

constexpr std::int64_t kLong = 60'000;

}  // namespace

TEST_CASE("an address is numeric, of either family") {
  const auto v4 = socket_address("10.1.2.3", 29400);
  REQUIRE(v4);
  CHECK(v4->length == sizeof(sockaddr_in));
  sockaddr_in bytes{};
  std::memcpy(&bytes, &v4->storage, sizeof bytes);
  CHECK(bytes.sin_family == AF_INET);
  CHECK(ntohs(bytes.sin_port) == 29400);
  CHECK(ntohl(bytes.sin_addr.s_addr) == 0x0a010203);
  for (const char* known : {"::1", "fe80::1%lo", "::ffff:10.1.2.3"}) {
    const auto v6 = socket_address(known, 1);
    REQUIRE_MESSAGE(v6, known);
    CHECK(v6->storage.ss_family == AF_INET6);
    CHECK(v6->length == sizeof(sockaddr_in6));
  }
  for (const char* unknown : {"", "localhost", "10.1.2", "fe80::1%no-such-interface", "::1%", "%lo"}) {
    CHECK_FALSE_MESSAGE(socket_address(unknown, 1), unknown);
  }
}

TEST_CASE("a death notice arrives whole, and sending it ends when it has been read") {
  const Listening peer = listening(1);
  const Bytes word(kDeathNoticeBytes, 42);
  Bytes heard;
  std::atomic<bool> is_read = false;
  std::thread reader([&] { heard = read_connection(peer.socket.get(), is_read); });
  const std::int64_t began_ms = monotonic_ms();
  send_notice({std::span(&peer.address, 1), word}, kLong);
  CHECK(is_read);
  CHECK(monotonic_ms() - began_ms < kLong);
  reader.join();
  CHECK(heard == word);
}

TEST_CASE("a listener that is not there, or does not answer, keeps nobody from going") {
  const Bytes word{1, 2, 3};
  const std::int64_t began_ms = monotonic_ms();
  const Listening nobody = listening(-1);  // a connection to it is refused
  send_notice({std::span(&nobody.address, 1), word}, kLong);
  CHECK(monotonic_ms() - began_ms < kLong);

  // This listener accepts no connection: the first one waits in its queue, and the next one not even there.
  const Listening deaf = listening(0);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t begin_ms = monotonic_ms();
    send_notice({std::span(&deaf.address, 1), word}, 100);
    CHECK(monotonic_ms() - begin_ms >= 100);
    CHECK(monotonic_ms() - begin_ms < kLong);
  }
}

TEST_CASE("a death notice reaches each listener, whoever of them is not there or does not answer") {
  const Listening nobody = listening(-1);
  const Listening deaf = listening(0);
  const std::array<Listening, 2> peers = {listening(1), listening(1)};
  const std::array to = {nobody.address, deaf.address, peers[0].address, peers[1].address};
  const Bytes word{1, 2, 3};
  std::array<Bytes, 2> heard;
  std::atomic<bool> is_read = false;
  std::thread reader([&] {
    for (std::size_t i = 0; i < peers.size(); ++i) heard[i] = read_connection(peers[i].socket.get(), is_read);
  });
  send_notice({to, word}, 100);
  reader.join();
  CHECK(heard[0] == word);
  CHECK(heard[1] == word);
}

}  // namespace elastic::process
