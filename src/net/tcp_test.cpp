#include "src/net/tcp.h"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/text.h"
#include "src/net/test_loop.h"

namespace elastic::net {
namespace {

using test::Client;
using test::Event;
using test::LoopThread;

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A listener on a running loop that keeps the streams it accepts.
class Host {
 public:
  using OnStream = std::function<void(Host&, Stream&)>;

  explicit Host(OnStream on_stream, const std::string& address = "127.0.0.1") : on_stream_(std::move(on_stream)) {
    loop.on_loop([&] {
      auto opened = Listener::open(loop.loop(), address, 0, [this](std::unique_ptr<Stream> stream) {
        streams.push_back(std::move(stream));
        on_stream_(*this, *streams.back());
      });
      REQUIRE(opened.has_value());
      listener = std::move(*opened);
      port = listener->port();
    });
  }
  ~Host() {
    loop.on_loop([&] {
      streams.clear();
      listener.reset();
    });
  }

  LoopThread loop;
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<Stream>> streams;
  std::uint16_t port = 0;

 private:
  OnStream on_stream_;
};

void echo(Host&, Stream& stream) {
  stream.start(
      {.on_data = [&stream](std::span<const std::uint8_t> bytes) { stream.write(std::string(as_text(bytes))); },
       .on_end = {}});
}

TEST_CASE("what a client sends arrives, and what is written comes back") {
  Host host(echo);
  Client first(host.port);
  Client second(host.port);
  REQUIRE(first.send("hello"));
  REQUIRE(second.send("world"));
  CHECK(first.receive(5) == "hello");
  CHECK(second.receive(5) == "world");
}

TEST_CASE("a listener without an address takes IPv4 and IPv6") {
  Host host(echo, "");
  for (const char* address : {"127.0.0.1", "::1"}) {
    CAPTURE(address);
    Client client(host.port, address);
    REQUIRE(client.send("x"));
    CHECK(client.receive(1) == "x");
  }
}

TEST_CASE("a listener on one address is not reached at another") {
  Host host(echo, "127.0.0.1");
  CHECK_FALSE(Client(host.port, "127.0.0.2").connected());
}

TEST_CASE("a port that is taken and an address that is none are errors that say so") {
  Host host(echo);
  host.loop.on_loop([&] {
    const auto taken = Listener::open(host.loop.loop(), "127.0.0.1", host.port, {});
    REQUIRE_FALSE(taken.has_value());
    CHECK(taken.error().what.find(std::to_string(host.port)) != std::string::npos);
    CHECK(taken.error().reason == errno_text(EADDRINUSE));
    const auto nowhere = Listener::open(host.loop.loop(), "localhost", 0, {});
    REQUIRE_FALSE(nowhere.has_value());
    CHECK(nowhere.error().reason == "not a numeric address");
  });
}

TEST_CASE("a port can be listened on again at once, though its connections have just been closed") {
  std::uint16_t port = 0;
  {
    Host host(echo);
    port = host.port;
    Client client(port);
    REQUIRE(client.send("x"));
    REQUIRE(client.receive(1) == "x");
    host.loop.on_loop([&] { host.streams.clear(); });  // this side closes first, and is left in TIME_WAIT
    CHECK(client.ended());
  }
  LoopThread loop;
  loop.on_loop([&] { CHECK(Listener::open(loop.loop(), "127.0.0.1", port, {}).has_value()); });
}

TEST_CASE("the end of a connection is told once, after what was sent before it") {
  for (const bool abruptly : {false, true}) {
    CAPTURE(abruptly);
    std::string seen;
    Event arrived;
    Event ended;
    Host host([&](Host&, Stream& stream) {
      stream.start({.on_data =
                        [&](std::span<const std::uint8_t> bytes) {
                          seen += as_text(bytes);
                          if (seen == "last words") arrived.happen();
                        },
                    .on_end = [&] { ended.happen(); }});
    });
    Client client(host.port);
    REQUIRE(client.send("last words"));
    REQUIRE(arrived.wait());
    client.end(abruptly);
    CHECK(ended.wait());
    host.loop.on_loop([&] { CHECK(host.streams.front()->unsent_bytes() == 0); });
  }
}

TEST_CASE("a client that closes its sending side has ended") {
  Event ended;
  Host host([&](Host&, Stream& stream) { stream.start({.on_data = [](auto) {}, .on_end = [&] { ended.happen(); }}); });
  Client client(host.port);
  client.finish_sending();
  CHECK(ended.wait());
}

TEST_CASE("nothing is read before start") {
  Event accepted;
  Host host([&](Host&, Stream&) { accepted.happen(); });
  Client client(host.port);
  REQUIRE(client.send("early"));
  REQUIRE(accepted.wait());
  host.loop.on_loop([&] { echo(host, *host.streams.front()); });
  CHECK(client.receive(5) == "early");
}

TEST_CASE("a stream may be destroyed by what it calls") {
  const auto destroy = [](Host& host, Stream& stream) {
    std::erase_if(host.streams, [&](const auto& kept) { return kept.get() == &stream; });
  };
  SUBCASE("when data comes") {
    Host host([&](Host& self, Stream& stream) {
      // The captured text must outlive the call in which its stream is destroyed.
      const std::string farewell(100, 'f');
      stream.start({.on_data =
                        [&self, &stream, destroy, farewell](auto) {
                          stream.write(std::string(farewell));
                          destroy(self, stream);
                          CHECK(farewell == std::string(100, 'f'));
                        },
                    .on_end = [] { FAIL("the stream has gone before"); }});
    });
    Client client(host.port);
    REQUIRE(client.send("x"));
    CHECK(client.receive(200) == std::string(100, 'f'));
    CHECK(client.ended());
  }
  SUBCASE("when the connection ends") {
    Event ended;
    Host host([&](Host& self, Stream& stream) {
      const std::string name(100, 'n');
      stream.start({.on_data = [](auto) {},
                    .on_end =
                        [&self, &stream, &ended, destroy, name] {
                          destroy(self, stream);
                          CHECK(name == std::string(100, 'n'));
                          ended.happen();
                        }});
    });
    Client(host.port).end();
    CHECK(ended.wait());
  }
  SUBCASE("when it is accepted") {
    Host host([&](Host& self, Stream&) { self.streams.clear(); });
    CHECK(Client(host.port).ended());
  }
}

TEST_CASE("a listener may be destroyed by what it calls") {
  Host host([](Host& self, Stream&) {
    self.listener.reset();
    self.streams.clear();
  });
  Client first(host.port);
  CHECK(first.ended());
  CHECK_FALSE(Client(host.port).connected());
}

// Makes more bytes than any socket buffer holds, in a pattern that shows the position of each.
std::string large_text() {
  std::string text(32 * 1024 * 1024, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 131 >> 8);
  return text;
}

TEST_CASE("a slow reader gets everything in order, and what it has not read is counted") {
  const std::string text = large_text();
  Event written;
  Host host([&](Host&, Stream& stream) {
    stream.start({.on_data = [](auto) {}, .on_end = {}});
    stream.write(std::string(text));
    CHECK(stream.unsent_bytes() > text.size() / 2);
    const std::size_t before = stream.unsent_bytes();
    stream.write("the end");
    CHECK(stream.unsent_bytes() == before + 7);
    written.happen();
  });
  Client client(host.port);
  REQUIRE(written.wait());
  CHECK(client.receive(text.size()) == text);
  CHECK(client.receive(7) == "the end");
  REQUIRE(client.send("."));
  host.loop.on_loop([&] { CHECK(host.streams.front()->unsent_bytes() == 0); });
}

TEST_CASE("a stream with unsent bytes can be destroyed, and its reader can vanish") {
  for (const bool reader_vanishes : {false, true}) {
    CAPTURE(reader_vanishes);
    Event written;
    Event ended;
    Host host([&](Host&, Stream& stream) {
      stream.start({.on_data = [](auto) {}, .on_end = [&] { ended.happen(); }});
      stream.write(large_text());
      written.happen();
    });
    Client client(host.port);
    REQUIRE(written.wait());
    if (reader_vanishes) {
      client.end(true);
      CHECK(ended.wait());
      host.loop.on_loop([&] { host.streams.front()->write("to nobody"); });
    }
    host.loop.on_loop([&] { host.streams.clear(); });
  }
}

TEST_CASE("what was sent at once leaves its memory to the next") {
  Event done;
  Host host([&](Host&, Stream& stream) {
    std::string bytes(1000, 'b');
    stream.write(std::move(bytes));
    bytes.clear();
    CHECK(bytes.capacity() >= 1000);
    done.happen();
  });
  Client client(host.port);
  CHECK(client.receive(1000) == std::string(1000, 'b'));
  CHECK(done.wait());
}

TEST_CASE("refuse_queued closes who waits to be accepted, and nobody else") {
  std::size_t accepted = 0;
  Host host([&](Host& self, Stream& stream) {
    ++accepted;
    echo(self, stream);
  });
  Client before(host.port);
  REQUIRE(before.send("1"));
  REQUIRE(before.receive(1) == "1");
  std::vector<Client> queued;
  host.loop.on_loop([&] {
    for (int i = 0; i < 50; ++i) queued.emplace_back(host.port);
    REQUIRE(queued.front().send("unread"));
    CHECK(host.listener->refuse_queued() == 50);
    CHECK(host.listener->refuse_queued() == 0);
  });
  for (Client& client : queued) {
    CHECK(client.connected());
    CHECK(client.ended());
  }
  Client after(host.port);
  REQUIRE(after.send("2"));
  CHECK(after.receive(1) == "2");
  REQUIRE(before.send("3"));
  CHECK(before.receive(1) == "3");
  host.loop.on_loop([&] { CHECK(accepted == 2); });
}

TEST_CASE("a stream tells the address of its peer") {
  std::string peer;
  Event accepted;
  Host host([&](Host&, Stream& stream) {
    peer = stream.peer();
    accepted.happen();
  });
  Client client(host.port);
  REQUIRE(accepted.wait());
  sockaddr_in own{};
  socklen_t length = sizeof own;
  REQUIRE(getsockname(client.fd(), reinterpret_cast<sockaddr*>(&own), &length) == 0);
  CHECK(peer == "127.0.0.1:" + std::to_string(ntohs(own.sin_port)));
}

// Reads an option of the socket that is the other end of a client's; it belongs to this process.
int option_of_peer(const Client& client, int level, int name) {
  const auto port_of = [](int fd, auto get_name) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    return get_name(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address.sin_port : 0;
  };
  const int client_port = port_of(client.fd(), getsockname);
  for (int fd = 0; fd < 1024; ++fd) {
    if (port_of(fd, getpeername) != client_port) continue;
    int value = -1;
    socklen_t size = sizeof value;
    CHECK(getsockopt(fd, level, name, &value, &size) == 0);
    return value;
  }
  return -1;
}

TEST_CASE("a peer whose host is gone is found out within two minutes, whatever was sent to it") {
  Host host(echo);
  Client client(host.port);
  REQUIRE(client.send("x"));
  REQUIRE(client.receive(1) == "x");  // it has been accepted
  CHECK(option_of_peer(client, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option_of_peer(client, IPPROTO_TCP, TCP_KEEPIDLE) +
            option_of_peer(client, IPPROTO_TCP, TCP_KEEPINTVL) * option_of_peer(client, IPPROTO_TCP, TCP_KEEPCNT) ==
        120);
  CHECK(option_of_peer(client, IPPROTO_TCP, TCP_USER_TIMEOUT) == 120'000);
  CHECK(option_of_peer(client, IPPROTO_TCP, TCP_NODELAY) == 1);
}

TEST_CASE("memory of unread replies is counted until it is free") {
  Host host(echo);
  Client client(host.port);
  const auto held = [&] {
    std::size_t bytes = 0;
    host.loop.on_loop([&] { bytes = host.streams.front()->held_bytes(); });
    return bytes;
  };
  REQUIRE(client.send("x"));
  REQUIRE(client.receive(1) == "x");  // it has been accepted
  constexpr std::size_t kLarge = 32 << 20;
  constexpr std::size_t kSmall = 1000;
  host.loop.on_loop([&] {
    Stream& stream = *host.streams.front();
    CHECK(stream.held_bytes() == 0);
    stream.write(std::string(kLarge, 'v'));
    CHECK(stream.held_bytes() > kLarge);  // though a part is sent
    for (std::size_t i = 0; i < kSmall; ++i) stream.write("w");
    CHECK(stream.held_bytes() > kLarge + kSmall * 100);  // much more than one byte each
    CHECK(stream.unsent_bytes() < kLarge + kSmall);
  });
  CHECK(client.receive(kLarge + kSmall).size() == kLarge + kSmall);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (held() != 0) REQUIRE(std::chrono::steady_clock::now() < end);
}

TEST_CASE("a burst of clients is accepted whole") {
  Host host(echo);
  std::vector<Client> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(host.port);
  for (Client& client : clients) REQUIRE(client.send("x"));
  for (Client& client : clients) CHECK(client.receive(1) == "x");
}

// Returns the result of a connector on the host's loop; a stream is closed there.
std::string connect(LoopThread& loop, const std::string& address, std::uint16_t port, std::int64_t timeout_ms) {
  std::unique_ptr<Connector> connector;
  std::string told;
  Event ended;
  loop.on_loop([&] {
    connector = std::make_unique<Connector>(loop.loop(), address, port, timeout_ms, [&](auto result) {
      told = result ? (*result)->peer() : result.error().text();
      connector.reset();  // from within its callback
      ended.happen();
    });
    CHECK(told.empty());
  });
  CHECK(ended.wait());
  return told;
}

TEST_CASE("a connection that is made can be written to and read from") {
  Host host(echo);
  std::unique_ptr<Connector> connector;
  std::unique_ptr<Stream> made;
  std::string seen;
  Event came;
  host.loop.on_loop([&] {
    connector = std::make_unique<Connector>(host.loop.loop(), "127.0.0.1", host.port, 10'000, [&](auto result) {
      REQUIRE(result.has_value());
      made = std::move(*result);
      made->start({.on_data =
                       [&](std::span<const std::uint8_t> bytes) {
                         seen += as_text(bytes);
                         if (seen.size() == 5) came.happen();
                       },
                   .on_end = {}});
      made->write("hello");
    });
  });
  CHECK(came.wait());
  host.loop.on_loop([&] {
    made.reset();
    connector.reset();
  });
  CHECK(seen == "hello");
}

TEST_CASE("a connection that can't be made is an error that says where and why") {
  std::uint16_t free_port = 0;
  {
    Host host(echo);
    free_port = host.port;
  }
  LoopThread loop;
  CHECK(connect(loop, "127.0.0.1", free_port, 10'000) ==
        format("cannot connect to port {} of 127.0.0.1: Connection refused", free_port));
  CHECK(connect(loop, "localhost", 1, 10'000) == "cannot connect to port 1 of localhost: not a numeric address");
}

TEST_CASE("a connection that is not answered in time is given up, and so is one whose owner ends") {
  // This listener accepts no connection: its queue of one is full, so further SYNs are dropped.
  const int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(full, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(full, 0) == 0);
  REQUIRE(getsockname(full, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const std::uint16_t port = ntohs(address.sin_port);
  Client first(port);
  LoopThread loop;
  CHECK(connect(loop, "127.0.0.1", port, 50) ==
        format("cannot connect to port {} of 127.0.0.1: no answer within 50 ms", port));
  bool called = false;
  loop.on_loop([&] { Connector(loop.loop(), "127.0.0.1", port, 10'000, [&](auto) { called = true; }); });
  loop.on_loop([] {});  // a turn in which the attempt would call back
  CHECK_FALSE(called);
  close(full);
}

}  // namespace
}  // namespace elastic::net
