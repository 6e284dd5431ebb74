#include "rendezvous/store/server.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/store/limits.h"
#include "rendezvous/store/test_requests.h"
#include "src/base/log.h"
#include "src/net/test_loop.h"

namespace elastic::store {
namespace {

using namespace test;
using net::test::Client;
using net::test::LoopThread;

const std::string kZero(1, '\0');
const std::string kOne(1, '\1');

// A server on a running loop. Refusals are expected and not logged.
class Host {
 public:
  explicit Host(const std::string& address = "127.0.0.1", const ServerBounds& bounds = {}) {
    log::set_level(log::Level::kOff);
    loop_.on_loop([&] {
      auto opened = Server::open(loop_.loop(), address, 0, bounds);
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
  // A client that has sent VALIDATE and PING and got the answer.
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

// Waits until the condition is true. Fails after ten seconds.
void wait_until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) REQUIRE(std::chrono::steady_clock::now() < end);
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
  // The ends of both connections are events of the loop. A request that is sent after them may be served before them.
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

TEST_CASE("a reply far longer than what may wait for a client arrives whole, and delays nobody") {
  Host host;
  Client other = host.client();
  Client slow = host.client();
  std::vector<std::string> keys;
  std::string replies;
  for (int i = 0; i < 100; ++i) {
    keys.push_back("/" + std::to_string(i));
    const std::string value(1 << 20, static_cast<char>(i));
    REQUIRE(other.send(set(keys.back(), value)));
    replies += text(value);
  }
  CHECK(ask(other, ping("done"), 4) == "done");
  REQUIRE(slow.send(op(Op::kMultiGet) + key_list(keys) + ping("last")));
  wait_until([&] { return host.stats().transit_bytes > 0; });
  CHECK(host.stats().transit_bytes < 1 << 20);
  // The values are deleted and replaced; the reply has the old ones.
  for (int i = 0; i < 99; ++i)
    CHECK(ask(other, set(keys[static_cast<std::size_t>(i)], "new") + ping("turn"), 4) == "turn");
  CHECK(host.stats().transit_bytes < 101 << 20);
  CHECK(slow.receive(replies.size()) == replies);
  CHECK(slow.receive(4) == "last");
  CHECK(host.stats().refused == 0);
  wait_until([&] { return host.stats().transit_bytes == 0; });
}

TEST_CASE("a client that does not read is not read from, delays nobody, and is served on when it reads") {
  Host host;
  Client other = host.client();
  Client slow = host.client();
  const std::string value(limits::kStorePayloadBytes, 'v');
  CHECK(ask(other, set("/big", value) + ping("done"), 4) == "done");
  std::string requests = wait({"/k"});
  for (int i = 0; i < 100; ++i) requests += get("/big");  // 800 MiB of replies
  REQUIRE(slow.send(requests));
  wait_until([&] { return host.stats().transit_bytes > 0; });
  CHECK(ask(other, set("/k", "") + ping("turn"), 4) == "turn");
  CHECK(host.stats().commands < 20);  // its other requests were not even decoded
  CHECK(host.stats().transit_bytes < 1 << 20);
  std::size_t received = 0;
  std::size_t zeros = 0;
  while (received < 100 * (8 + value.size()) + 1) {
    const std::string part = slow.receive(std::min<std::size_t>(1 << 20, 100 * (8 + value.size()) + 1 - received));
    REQUIRE(!part.empty());
    received += part.size();
    zeros += static_cast<std::size_t>(std::ranges::count(part, '\0'));
  }
  CHECK(zeros == 100 * 7 + 1);  // the bytes of the lengths, and the reply to the wait
  CHECK(ask(slow, ping("last"), 4) == "last");
  CHECK(host.stats().refused == 0);
}

TEST_CASE("a client that does not read takes no memory for the large request that it made last") {
  Host host;
  const std::string value(limits::kStorePayloadBytes, 'v');
  Client slow = host.client();
  CHECK(ask(slow, set("/big", value) + ping("done"), 4) == "done");
  const std::string other(value.size(), 'o');
  const std::string request = op(Op::kCompareSet) + text("/big") + text(other) + text(other);
  const auto in_use = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before = in_use();
  REQUIRE(slow.send(request));
  wait_until([&] { return host.stats().operations[static_cast<std::size_t>(Op::kCompareSet)] == 1; });
  CHECK(in_use() < before + value.size() / 2);
}

TEST_CASE("small replies that are left unread take no more memory than they may, and none is lost") {
  constexpr std::size_t kMost = 1 << 20;
  constexpr int kRequests = 100'000;
  Host host("127.0.0.1", {.unread_bytes = kMost});
  Client slow = host.client();
  CHECK(ask(slow, set("/v", std::string(1024, 'v')) + ping("done"), 4) == "done");
  std::thread sender([&] {
    std::string requests;
    for (int i = 0; i < kRequests; ++i) requests += get("/v") + ping("drip");
    slow.send(requests);
  });
  wait_until([&] { return host.stats().transit_bytes > kMost; });
  std::size_t most = 0;
  for (std::uint64_t before = 0; before != host.stats().commands;) {
    before = host.stats().commands;
    most = std::max(most, host.stats().transit_bytes);
  }
  CHECK(most <= 2 * kMost);
  const std::string one = text(std::string(1024, 'v')) + "drip";
  std::string wrong;
  for (int i = 0; i < kRequests && wrong.empty(); ++i) {
    if (std::string got = slow.receive(one.size()); got != one) wrong = got;
  }
  CHECK(wrong.empty());
  sender.join();
  wait_until([&] { return host.stats().transit_bytes == 0; });
  CHECK(host.stats().refused == 0);
}

TEST_CASE("a bad request behind long replies closes its client when it has taken them") {
  Host host("127.0.0.1", {.unread_bytes = 64 << 20});
  Client bad = host.client();
  const std::string value(limits::kStorePayloadBytes, 'v');
  REQUIRE(bad.send(set("/big", value) + get("/big") + get("/big") + "\xFF"));
  wait_until([&] { return host.stats().refused == 1; });
  CHECK(host.stats().connections == 1);
  CHECK(bad.receive(2 * (8 + value.size())) == text(value) + text(value));
  CHECK(bad.ended());
  wait_until([&] { return host.stats().connections == 0; });
}

TEST_CASE("a client that vanishes while replies wait for it leaves nothing") {
  Host host;
  Client other = host.client();
  const std::string value(limits::kStorePayloadBytes, 'v');
  CHECK(ask(other, set("/big", value) + ping("done"), 4) == "done");
  for (const bool abruptly : {false, true}) {
    CAPTURE(abruptly);
    Client gone = host.client();
    REQUIRE(gone.send(wait({"/k"}) + op(Op::kMultiGet) + key_list(std::vector<std::string>(20, "/big"))));
    wait_until([&] { return host.stats().transit_bytes > 0; });
    CHECK(ask(other, set("/big", value) + ping("done"), 4) == "done");
    CHECK(host.stats().transit_bytes > value.size());
    gone.end(abruptly);
    wait_until([&] { return host.stats().connections == 1 && host.stats().transit_bytes == 0; });
  }
  CHECK(ask(other, set("/k", "") + ping("done"), 4) == "done");
}

TEST_CASE("a store beyond its bound closes who would fill it, and serves the others") {
  Host host("127.0.0.1", {.store_bytes = 1 << 20});
  Client other = host.client();
  Client filling = host.client();
  CHECK(ask(other, set("/k", "value") + ping("done"), 4) == "done");
  CHECK(ask(filling, set("/big", std::string(1 << 20, 'v')), 1).empty());
  CHECK(ask(other, get("/k"), 13) == text("value"));
  CHECK(ask(other, op(Op::kGetNumKeys), 8) == i64(1));
  CHECK(host.stats().refused == 1);
  CHECK(ask(other, op(Op::kDeleteKey) + text("/k"), 8) == i64(1));
  CHECK(host.stats().store_bytes == 0);
}

TEST_CASE("half requests of all clients together are bounded: who has the most is closed") {
  constexpr std::size_t kMost = 1 << 20;
  Host host("127.0.0.1", {.transit_bytes = kMost});
  const auto half_of = [&](Client& client, std::size_t size) {
    REQUIRE(client.send(op(Op::kSet) + text("/k") + i64(kMost) + std::string(size, 'v')));
  };
  const auto wait_for = [&](std::size_t bytes) { wait_until([&] { return host.stats().transit_bytes == bytes; }); };
  Client largest = host.client();
  half_of(largest, kMost / 2);
  wait_for(2 + kMost / 2);
  std::vector<Client> smaller;
  for (std::size_t i = 0; i < 4; ++i) {
    smaller.push_back(host.client());
    half_of(smaller.back(), kMost / 8 - 3);
    wait_for(2 + kMost / 2 + (i + 1) * (kMost / 8 - 1));
  }
  CHECK(host.stats().refused == 0);
  Client one_more = host.client();
  half_of(one_more, 1000);
  CHECK(largest.ended());
  wait_for(4 * (kMost / 8 - 1) + 1002);
  CHECK(host.stats().refused == 1);
  CHECK(host.stats().connections == 5);
  // Requests that are dropped or completed make room.
  smaller.clear();
  REQUIRE(one_more.send(std::string(kMost - 1000, 'v') + ping("done")));
  CHECK(one_more.receive(4) == "done");
  wait_for(0);
}

TEST_CASE("unread replies that the store no longer holds are bounded for all clients: who has the most is closed") {
  constexpr std::size_t kMost = 64 << 20;
  Host host("127.0.0.1", {.transit_bytes = kMost});
  Client other = host.client();
  const auto fill = [&] {
    for (int i = 0; i < 60; ++i) REQUIRE(other.send(set("/" + std::to_string(i), std::string(1 << 20, 'v'))));
    CHECK(ask(other, ping("done"), 4) == "done");
  };
  const auto ask_for = [&](Client& client, int values) {
    std::vector<std::string> keys;
    for (int i = 0; i < values; ++i) keys.push_back("/" + std::to_string(i));
    const std::uint64_t before = host.stats().commands;
    REQUIRE(client.send(op(Op::kMultiGet) + key_list(keys)));
    wait_until([&] { return host.stats().commands > before; });
  };
  fill();
  std::vector<Client> harmless;
  for (int i = 0; i < 20; ++i) {  // these replies are gigabytes, but share the stored values
    harmless.push_back(host.client());
    ask_for(harmless.back(), 60);
  }
  CHECK(host.stats().transit_bytes < kMost / 4);
  harmless.clear();
  Client greedy = host.client();
  ask_for(greedy, 60);
  fill();
  CHECK(host.stats().refused == 0);
  Client modest = host.client();
  ask_for(modest, 30);
  fill();
  CHECK(host.stats().refused == 1);
  CHECK(host.stats().transit_bytes <= kMost);
  CHECK(greedy.receive(60 << 20).size() < 60 << 20);  // then its connection was closed
  CHECK(modest.receive(30 * (8 + (1 << 20))).size() == 30 * (8 + (1 << 20)));
}

TEST_CASE("replies that have been read since make room for others") {
  constexpr std::size_t kMost = 32 << 20;
  Host host("127.0.0.1", {.transit_bytes = kMost});
  const std::string value(8 << 20, 'v');
  std::vector<Client> clients;
  for (int i = 0; i < 12; ++i) {  // none of them sends another request, so that its count is an old one
    clients.push_back(host.client());
    REQUIRE(clients.back().send(i == 0 ? set("/v", value) + get("/v") + get("/v") : get("/v") + get("/v")));
    CHECK(clients.back().receive(2 * (8 + value.size())).size() == 2 * (8 + value.size()));
  }
  CHECK(host.stats().refused == 0);
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
      // These connections wait in the accept queue with requests of the old round.
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
  Host host("127.0.0.1", {.greeting_ms = 50});
  Client greeted(host.port());
  REQUIRE(greeted.send(kHello));
  Client silent(host.port());
  Client halfway(host.port());
  REQUIRE(halfway.send(kHello.substr(0, kHello.size() - 1)));
  CHECK(silent.ended());
  CHECK(halfway.ended());
  CHECK(host.stats().refused == 2);
  Client later(host.port());  // each connection has a deadline of its own, also after a pause
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
