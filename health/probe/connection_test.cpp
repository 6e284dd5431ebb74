#include "health/probe/connection.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "src/base/text.h"

using namespace elastic;
using namespace elastic::health;

namespace {

constexpr std::int64_t kLong = 60000;  // a deadline that no test reaches

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A blocking connection, over which a test may send anything.
UniqueFd stranger_at(std::uint16_t port, const std::string& says = "") {
  UniqueFd stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  REQUIRE(connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(send(stranger.get(), says.data(), says.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(says.size()));
  return stranger;
}

// The first bytes that come; empty where the other end closes the connection, with or without a reset.
std::string heard_by(const UniqueFd& socket) {
  char bytes[64];
  const ssize_t got = recv(socket.get(), bytes, sizeof bytes, 0);
  return got > 0 ? std::string(bytes, static_cast<std::size_t>(got)) : "";
}

bool is_still_open(const UniqueFd& socket) {
  char byte = 0;
  return recv(socket.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

// A server of another kind, which accepts one connection.
struct Server {
  UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port = 0;

  explicit Server(bool listens = true) {
    sockaddr_in address = loopback(0);
    REQUIRE(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    socklen_t length = sizeof address;
    REQUIRE(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port = ntohs(address.sin_port);
    if (listens) REQUIRE(listen(socket.get(), 8) == 0);
  }
  UniqueFd take_one() const { return UniqueFd(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
};

std::string hello_of(int rank, const std::string& key) {
  return "elprobe1" + key + std::string(3, '\0') + static_cast<char>(rank) + "12345678";
}

PairOrder order_to(int rank, const Listener& listener, std::vector<std::string> at = {"127.0.0.1"}) {
  return {.with = rank, .at = std::move(at), .port = listener.port(), .key = listener.key()};
}

// Connects as a probe of that rank, in a thread.
std::future<Attempt<UniqueFd>> connecting(int rank, PairOrder order) {
  return std::async(std::launch::async,
                    [rank, order = std::move(order)] { return connect_to_peer(rank, order, kLong, Deadline(kLong)); });
}

// Whether both sockets are ends of one connection.
void check_same(const Attempt<UniqueFd>& one, const Attempt<UniqueFd>& other) {
  REQUIRE(one);
  REQUIRE(other);
  sockaddr_storage name = {}, peer = {};
  socklen_t name_length = sizeof name, peer_length = sizeof peer;
  REQUIRE(getsockname(one->get(), reinterpret_cast<sockaddr*>(&name), &name_length) == 0);
  REQUIRE(getpeername(other->get(), reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0);
  const auto port_of = [](const sockaddr_storage& address) {
    return reinterpret_cast<const sockaddr_in*>(&address)->sin_port;  // both families have it at the same offset
  };
  CHECK(port_of(name) == port_of(peer));
  REQUIRE(send(one->get(), "x", 1, MSG_NOSIGNAL) == 1);
  char byte = 0;
  while (recv(other->get(), &byte, 1, 0) < 0 && errno == EAGAIN) std::this_thread::yield();
  CHECK(byte == 'x');
}

Listener open_listener() {
  auto listener = Listener::open(make_key());
  REQUIRE(listener);
  REQUIRE(listener->port() != 0);
  return std::move(*listener);
}

bool has_ipv6() {
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return socket && bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

TEST_CASE("a key is 32 hexadecimal digits, and each is another") {
  const std::string key = make_key();
  CHECK(key.size() == kKeyBytes);
  CHECK(key.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(key != make_key());
}

TEST_CASE("the two ends have one connection, whichever of the addresses there are, and however often one is named") {
  std::vector<std::vector<std::string>> choices = {{"127.0.0.1"},
                                                   {"127.0.0.1", "127.0.0.1", "::1", "127.0.0.2", "no address"}};
  if (has_ipv6()) choices.push_back({"::1"});
  for (const auto& at : choices) {
    Listener listener = open_listener();
    for (int time = 0; time < 2; ++time) {  // nothing of the first time may disturb the second
      auto peer = connecting(3, order_to(1, listener, at));
      const auto ours = listener.await_peer(1, 3, Deadline(kLong), kLong);
      const auto theirs = peer.get();
      check_same(ours, theirs);
      check_same(theirs, ours);
    }
  }
}

TEST_CASE("who waits for a peer that never comes says so at the deadline") {
  Listener listener = open_listener();
  const auto nobody = listener.await_peer(0, 1, Deadline(20), kLong);
  REQUIRE(!nobody);
  CHECK(nobody.error() == format("no connection within 0.02 s (port {})", listener.port()));
}

TEST_CASE("strangers who say nothing, half of it, garbage or a wrong key do not disturb the peer") {
  Listener listener = open_listener();
  const UniqueFd silent = stranger_at(listener.port());
  const UniqueFd half = stranger_at(listener.port(), hello_of(1, listener.key()).substr(0, 30));
  const UniqueFd browser =
      stranger_at(listener.port(), "GET / HTTP/1.1\r\nHost: node0\r\nUser-Agent: a scanner of ports\r\n\r\n");
  const UniqueFd wrong_key = stranger_at(listener.port(), hello_of(1, make_key()));
  const UniqueFd wrong_end = stranger_at(listener.port(), hello_of(1, listener.key().substr(0, 31) + "x"));
  const UniqueFd wrong_version = stranger_at(listener.port(), "elprobe9" + hello_of(1, listener.key()).substr(8));
  auto peer = connecting(1, order_to(0, listener));
  const auto ours = listener.await_peer(0, 1, Deadline(kLong), kLong);
  check_same(ours, peer.get());
  CHECK(is_still_open(silent));
  CHECK(is_still_open(half));
  for (const UniqueFd* stranger : {&browser, &wrong_key, &wrong_end, &wrong_version}) {
    CHECK(heard_by(*stranger).empty());
  }
}

TEST_CASE("who has not said hello by its deadline is closed") {
  Listener listener = open_listener();
  const UniqueFd silent = stranger_at(listener.port());
  CHECK(!listener.await_peer(0, 1, Deadline(100), 1));
  CHECK(heard_by(silent).empty());
}

TEST_CASE("a hundred silent strangers keep no peer out, whether it comes before or after them") {
  Listener listener = open_listener();
  const UniqueFd early = stranger_at(listener.port(), hello_of(2, listener.key()));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(stranger_at(listener.port()));
  auto peer = connecting(1, order_to(0, listener));
  const auto ours = listener.await_peer(0, 1, Deadline(kLong), kLong);
  check_same(ours, peer.get());
  CHECK(is_still_open(early));
}

TEST_CASE("a peer that comes before its turn is kept, and not answered, until then") {
  Listener listener = open_listener();
  const UniqueFd early = stranger_at(listener.port(), hello_of(2, listener.key()));
  auto first = connecting(1, order_to(0, listener));
  const auto ours = listener.await_peer(0, 1, Deadline(kLong), kLong);
  check_same(ours, first.get());
  CHECK(is_still_open(early));
  auto second = std::async(std::launch::async, [&] { return listener.await_peer(0, 2, Deadline(kLong), kLong); });
  CHECK(heard_by(early) == std::string("elprobe+\0\0\0\0", 12) + "12345678");
  REQUIRE(send(early.get(), "!", 1, MSG_NOSIGNAL) == 1);
  CHECK(second.get().has_value());
}

TEST_CASE("of a peer's connections the one counts on which it goes on") {
  Listener listener = open_listener();
  const UniqueFd forgotten = stranger_at(listener.port(), hello_of(1, listener.key()));
  stranger_at(listener.port(), hello_of(1, listener.key()));  // and closes the connection
  auto peer = connecting(1, order_to(0, listener));
  const auto ours = listener.await_peer(0, 1, Deadline(kLong), kLong);
  check_same(ours, peer.get());
  CHECK(heard_by(forgotten).size() == kAnswerBytes);
  CHECK(heard_by(forgotten).empty());
}

TEST_CASE("who says anything before it is answered is no peer") {
  Listener listener = open_listener();
  const UniqueFd hasty = stranger_at(listener.port(), hello_of(2, listener.key()) + "!");
  CHECK(!listener.await_peer(0, 1, Deadline(50), kLong));
  CHECK(heard_by(hasty).empty());
}

TEST_CASE("addresses in vain are named with what became of them") {
  const Server closed(false);
  const std::string key = make_key();
  const auto why_not = [&](std::vector<std::string> at, std::string with_key) {
    const PairOrder order = {.with = 0, .at = std::move(at), .port = closed.port, .key = std::move(with_key)};
    const auto connection = connect_to_peer(1, order, kLong, Deadline(kLong));
    REQUIRE(!connection);
    return connection.error();
  };
  CHECK(why_not({"127.0.0.1"}, key) == format("it refused the connection (127.0.0.1 port {})", closed.port));
  CHECK(why_not({"127.0.0.1", "node0", "127.0.0.2"}, key) ==
        format("it refused the connection (127.0.0.1, 127.0.0.2 port {0}); this is not an address (node0 port {0})",
               closed.port));
  CHECK(why_not({}, key) == "none of its addresses is known");
  CHECK(why_not({"127.0.0.1"}, "9f0c") == "it has no key");
}

TEST_CASE("where something else answers, or nothing, or it hangs up, the connecting side says which") {
  const auto why_not = [](const Server& server, std::int64_t patience_ms) {
    const PairOrder order = {.with = 0, .at = {"127.0.0.1"}, .port = server.port, .key = make_key()};
    const auto connection = connect_to_peer(1, order, kLong, Deadline(patience_ms));
    REQUIRE(!connection);
    return connection.error();
  };
  const Server silent;  // the kernel accepts the connection, and nobody answers
  CHECK(why_not(silent, 30) == format("it did not answer within 0.03 s (127.0.0.1 port {})", silent.port));
  const Server other;
  std::thread answers([&] {
    const UniqueFd taken = other.take_one();
    send(taken.get(), "SSH-2.0-OpenSSH", 15, MSG_NOSIGNAL);
    heard_by(taken);
    heard_by(taken);
  });
  CHECK(why_not(other, kLong) == format("what answers there is not its probe (127.0.0.1 port {})", other.port));
  answers.join();
  const Server leaving;
  std::thread leaves([&] { CHECK(heard_by(leaving.take_one()).size() == kHelloBytes); });
  CHECK(why_not(leaving, kLong) ==
        format("it closed the connection before the test (127.0.0.1 port {})", leaving.port));
  leaves.join();
}
