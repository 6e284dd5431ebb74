#include "rendezvous/store/server.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/store/test_requests.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/net/test_loop.h"

namespace elastic::store {
namespace {

using namespace test;
using net::test::Client;
using net::test::LoopThread;

const std::string kZero(1, '\0');
const std::string kOne(1, '\1');

// A server on a running loop. Refusals are expected here and must not fill the test's output.
class Host {
 public:
  explicit Host(const std::string& address = "127.0.0.1", std::int64_t greeting_ms = 30'000) {
    log::set_level(log::Level::kOff);
    loop_.on_loop([&] {
      auto opened = Server::open(loop_.loop(), address, 0, greeting_ms);
      REQUIRE(opened.has_value());
      server_ = std::move(*opened);
      port_ = server_->port();
    });
  }
  ~Host() {
    loop_.on_loop([&] { server_.reset(); });
    log::set_level(log::Level::kWarning);
  }

  std::uint16_t port() const { return port_; }
  void on_loop(const std::function<void(Server&)>& task) {
    loop_.on_loop([&] { task(*server_); });
  }
  Server::Stats stats() {
    Server::Stats stats;
    on_loop([&](Server& server) { stats = server.stats(); });
    return stats;
  }
  // A client that has said its first words and was answered.
  Client client() {
    Client made(port_);
    REQUIRE(made.send(kHello + ping("1234")));
    REQUIRE(made.receive(4) == "1234");
    return made;
  }

 private:
  LoopThread loop_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
};

std::string ask(Client& client, const std::string& request, std::size_t reply_size) {
  REQUIRE(client.send(request));
  return client.receive(reply_size);
}

TEST_CASE("clients of one server share its keys") {
  Host host;
  Client first = host.client();
  Client second = host.client();
  CHECK(ask(first, set("/k", "value") + ping("abcd"), 4) == "abcd");
  CHECK(ask(second, get("/k"), 13) == text("value"));
  CHECK(host.stats().keys == 1);
  CHECK(host.stats().connections == 2);
}

TEST_CASE("requests that come together are answered in order") {
  Host host;
  Client client = host.client();
  std::string requests;
  std::string replies;
  for (int i = 1; i <= 1000; ++i) {
    requests += add("/n", 1) + op(Op::kGetNumKeys);
    replies += i64(i) + i64(1);
  }
  CHECK(ask(client, requests, replies.size()) == replies);
}

TEST_CASE("a client that waits is answered when another sets its key, and meanwhile too") {
  Host host;
  Client waiting = host.client();
  Client other = host.client();
  CHECK(ask(waiting, wait({"/a", "/b"}) + ping("wxyz"), 4) == "wxyz");
  CHECK(ask(other, set("/a", "") + set("/b", "") + ping("abcd"), 4) == "abcd");
  CHECK(waiting.receive(1) == kZero);
}

TEST_CASE("a refused connection is closed, after the replies to what came before, and no other") {
  Host host;
  Client other = host.client();
  Client bad = host.client();
  const std::string wrong = ping("abcd") + op(Op::kGet) + i64(limits::kStoreKeyBytes + 1);
  CHECK(ask(bad, wrong, 4) == "abcd");
  CHECK(bad.ended());
  Client stranger(host.port());
  REQUIRE(stranger.send("GET / HTTP/1.1\r\n\r\n"));
  CHECK(stranger.ended());
  CHECK(ask(other, ping("efgh"), 4) == "efgh");
  CHECK(host.stats().refused == 2);
  CHECK(host.stats().connections == 1);
}

TEST_CASE("a command that must not be carried out closes its client only, the value unchanged") {
  Host host;
  Client other = host.client();
  Client bad = host.client();
  CHECK(ask(bad, set("/n", "abc") + add("/n", 1) + set("/n", "later"), 1).empty());
  CHECK(ask(other, get("/n"), 11) == text("abc"));
}

TEST_CASE("a client that dies while it waits or in the middle of a command leaves nothing") {
  Host host;
  Client other = host.client();
  Client waiting = host.client();
  Client half = host.client();
  CHECK(ask(waiting, wait({"/k"}) + ping("wait"), 4) == "wait");
  REQUIRE(half.send(set("/k", "never complete").substr(0, 25)));
  waiting.end(true);
  half.end(true);
  // Both ends are events of the loop; a request sent after them may still be served before.
  while (host.stats().connections > 1) CHECK(ask(other, ping("turn"), 4) == "turn");
  CHECK(ask(other, op(Op::kGetNumKeys), 8) == i64(0));
  CHECK(ask(other, set("/k", "") + ping("done"), 4) == "done");
}

TEST_CASE("one set wakes many clients") {
  Host host;
  std::vector<Client> waiting;
  for (int i = 0; i < 200; ++i) {
    waiting.push_back(host.client());
    CHECK(ask(waiting.back(), wait({"/go"}) + ping("wait"), 4) == "wait");
  }
  Client other = host.client();
  REQUIRE(other.send(set("/go", "")));
  for (Client& client : waiting) CHECK(client.receive(1) == kZero);
}

TEST_CASE("a client that reads no replies is closed at the limit, and delays nobody") {
  Host host;
  Client other = host.client();
  Client slow = host.client();
  const std::string value(limits::kStorePayloadBytes, 'v');
  CHECK(ask(other, set("/big", value) + ping("done"), 4) == "done");
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += get("/big");  // 800 MiB of replies
  REQUIRE(slow.send(requests));
  while (host.stats().connections > 1) CHECK(ask(other, ping("turn"), 4) == "turn");
  CHECK(host.stats().refused == 1);
  CHECK(host.stats().commands < 50);  // the rest of its requests was not even looked at
}

TEST_CASE("replies that are left unread one after the other end in the same") {
  Host host;
  Client slow = host.client();
  const std::string value(128 * 1024, 'v');
  CHECK(ask(slow, set("/v", value) + ping("done"), 4) == "done");
  std::uint64_t asked = host.stats().commands;
  while (host.stats().refused == 0) {
    REQUIRE(asked * value.size() < 4 * limits::kStoreUnreadReplyBytes);
    REQUIRE(slow.send(get("/v")));
    ++asked;
    while (host.stats().commands < asked) continue;
  }
  CHECK(asked * value.size() > limits::kStoreUnreadReplyBytes);
  CHECK(host.stats().connections == 0);
}

TEST_CASE("a reader that is slow but reads gets all its replies") {
  Host host;
  Client client = host.client();
  const std::string value(limits::kStorePayloadBytes, 'v');
  std::string requests = set("/big", value);
  for (int i = 0; i < 7; ++i) requests += get("/big");
  REQUIRE(client.send(requests));
  for (int i = 0; i < 7; ++i) CHECK(client.receive(8 + value.size()) == text(value));
}

TEST_CASE("after a reset every old connection is closed and no old key is seen") {
  Host host;
  Client idle = host.client();
  Client waiting = host.client();
  CHECK(ask(waiting, wait({"/k"}) + set("/old", "") + ping("wait"), 4) == "wait");
  host.on_loop([](Server& server) { server.reset(); });
  CHECK(idle.ended());
  CHECK(waiting.ended());
  CHECK(host.stats().connections == 0);
  Client fresh = host.client();
  CHECK(ask(fresh, op(Op::kGetNumKeys), 8) == i64(0));
  CHECK(ask(fresh, set("/k", "") + ping("done"), 4) == "done");
}

TEST_CASE("no key of an old round is seen over a hundred resets") {
  Host host;
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    Client client = host.client();
    CHECK(ask(client, op(Op::kGetNumKeys), 8) == i64(0));
    CHECK(ask(client, add("/round", 1), 8) == i64(1));
    Client waiting = host.client();
    CHECK(ask(waiting, wait({"/never"}) + ping("wait"), 4) == "wait");
    Client half(host.port());
    REQUIRE(half.send(kHello + set("/half", "of a value").substr(0, 20)));
    std::vector<Client> queued;
    host.on_loop([&](Server& server) {
      // They wait in the accept queue with an old round's requests.
      for (int i = 0; i < 10; ++i) {
        queued.emplace_back(host.port());
        REQUIRE(queued.back().connected());
        REQUIRE(queued.back().send(kHello + set("/late", "") + add("/round", 1)));
      }
      server.reset();
    });
    for (Client& late : queued) CHECK(late.receive(8).empty());
    CHECK(half.ended());
    CHECK(client.ended());
    CHECK(waiting.ended());
  }
  Client last = host.client();
  CHECK(ask(last, op(Op::kListKeys), 8) == i64(0));
}

TEST_CASE("a server without an address is reached by IPv4 and IPv6") {
  Host host("");
  for (const char* address : {"127.0.0.1", "::1"}) {
    CAPTURE(address);
    Client client(host.port(), address);
    CHECK(ask(client, kHello + ping("abcd"), 4) == "abcd");
  }
}

TEST_CASE("a port that is taken is an error") {
  Host host;
  LoopThread loop;
  loop.on_loop([&] {
    const auto second = Server::open(loop.loop(), "127.0.0.1", host.port());
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().what.find(std::to_string(host.port())) != std::string::npos);
  });
}

TEST_CASE("who does not say VALIDATE in time is closed, who said it may be silent for ever") {
  Host host("127.0.0.1", 50);
  Client greeted(host.port());
  REQUIRE(greeted.send(kHello));
  Client silent(host.port());
  Client halfway(host.port());
  REQUIRE(halfway.send(kHello.substr(0, kHello.size() - 1)));
  CHECK(silent.ended());
  CHECK(halfway.ended());
  CHECK(host.stats().refused == 2);
  Client later(host.port());  // the clock runs for each from its own start, also after a pause
  CHECK(later.ended());
  CHECK(ask(greeted, ping("abcd"), 4) == "abcd");
}

TEST_CASE("a server that goes closes its clients and its port") {
  std::vector<Client> clients;
  std::uint16_t port = 0;
  {
    Host host;
    port = host.port();
    for (int i = 0; i < 3; ++i) clients.push_back(host.client());
  }
  for (Client& client : clients) CHECK(client.ended());
  CHECK_FALSE(Client(port).connected());
}

}  // namespace
}  // namespace elastic::store
