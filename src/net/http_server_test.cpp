#include "src/net/http_server.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/net/limits.h"
#include "src/net/tcp.h"
#include "src/net/test_loop.h"

namespace elastic::net {
namespace {

using test::Client;
using test::LoopThread;

// A server on a free port.
class Host {
 public:
  explicit Host(HttpServer::Answer answer) {
    loop.on_loop([&] {
      server = std::make_unique<HttpServer>(loop.loop(), std::move(answer));
      auto opened = Listener::open(loop.loop(), "127.0.0.1", 0,
                                   [this](std::unique_ptr<Stream> stream) { server->adopt(std::move(stream), {}); });
      REQUIRE(opened.has_value());
      listener = std::move(*opened);
      port = listener->port();
    });
  }
  ~Host() {
    loop.on_loop([&] {
      listener.reset();
      server.reset();
    });
  }
  std::size_t connections() {
    std::size_t count = 0;
    loop.on_loop([&] { count = server->connections(); });
    return count;
  }

  LoopThread loop;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<Listener> listener;
  std::uint16_t port = 0;
};

http::Response echo(const http::Request& request, const std::string&) { return http::plain(200, request.path); }

// Reads one complete answer.
std::string answer_of(Client& client) {
  std::string text;
  while (!text.ends_with("\r\n\r\n")) {
    const std::string byte = client.receive(1);
    if (byte.empty()) return text;
    text += byte;
  }
  const std::string name = "Content-Length: ";
  return text + client.receive(std::stoul(text.substr(text.find(name) + name.size())));
}

}  // namespace

TEST_CASE("a connection serves one request after another, until one says that it is the last") {
  Host host(echo);
  Client client(host.port);
  for (const char* path : {"/a", "/b"}) {
    REQUIRE(client.send(std::string("GET ") + path + " HTTP/1.1\r\n\r\n"));
    CHECK(answer_of(client).ends_with(std::string("\r\n\r\n") + path + "\n"));
  }
  REQUIRE(client.send("GET /c HTTP/1.1\r\nConnection: close\r\n\r\n"));
  CHECK(answer_of(client).contains("Connection: close\r\n"));
  CHECK(client.ended());
}

TEST_CASE("a connection may have answers of its own") {
  Host host(echo);
  host.loop.on_loop([&] {
    auto opened = Listener::open(host.loop.loop(), "127.0.0.1", 0, [&](std::unique_ptr<Stream> stream) {
      host.server->adopt(std::move(stream), {},
                         [](const http::Request&, const std::string& peer) { return http::plain(404, peer); });
    });
    REQUIRE(opened.has_value());
    host.listener = std::move(*opened);
    host.port = host.listener->port();
  });
  Client client(host.port);
  REQUIRE(client.send("GET /a HTTP/1.1\r\n\r\n"));
  const std::string answer = answer_of(client);
  CHECK(answer.starts_with("HTTP/1.1 404"));
  CHECK(answer.ends_with("\r\n\r\n127.0.0.1\n"));
}

TEST_CASE("what is no request is answered with its reason, and closed") {
  Host host(echo);
  Client client(host.port);
  REQUIRE(client.send("GET nonsense\r\n\r\n"));
  CHECK(answer_of(client).starts_with("HTTP/1.1 400 Bad Request\r\n"));
  CHECK(client.ended());
  host.loop.on_loop([&] { CHECK(host.server->answered().at(400) == 1); });
}

TEST_CASE("of many requests at once each turn of the loop answers some, and in the end all are answered") {
  constexpr std::size_t kAll = 1000;
  std::size_t answered = 0;
  std::size_t seen = 0;
  std::size_t most = 0;
  Host host([&](const http::Request& request, const std::string& peer) {
    ++answered;
    return echo(request, peer);
  });
  std::unique_ptr<Timer> each_turn;
  std::function<void()> look = [&] {
    most = std::max(most, answered - seen);
    seen = answered;
    if (seen < kAll) each_turn->start(1, look);
  };
  host.loop.on_loop([&] {
    each_turn = std::make_unique<Timer>(host.loop.loop());
    each_turn->start(1, look);
  });
  std::string requests;
  for (std::size_t i = 0; i < kAll; ++i) requests += "GET /x HTTP/1.1\r\n\r\n";
  Client client(host.port);
  REQUIRE(client.send(requests));
  for (std::size_t i = 0; i < kAll; ++i) REQUIRE(answer_of(client).ends_with("/x\n"));
  host.loop.on_loop([&] {
    each_turn.reset();
    // At most two turns of the server lie between two checks that are a turn apart.
    CHECK(most <= 2 * limits::kHttpRequestsPerTurn);
    CHECK(most > 0);
  });
}

TEST_CASE("one connection more than are served is told so, and there is room again when one has gone") {
  Host host(echo);
  std::vector<Client> clients;
  for (std::size_t i = 0; i < limits::kHttpConnections; ++i) {
    clients.emplace_back(host.port);
    REQUIRE(clients.back().send("GET /x HTTP/1.1\r\n\r\n"));
    REQUIRE(answer_of(clients.back()).starts_with("HTTP/1.1 200"));
  }
  Client late(host.port);
  CHECK(answer_of(late).starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  CHECK(late.ended());
  clients.clear();
  while (host.connections() > 0) {
  }
  Client again(host.port);
  REQUIRE(again.send("GET /x HTTP/1.1\r\n\r\n"));
  CHECK(answer_of(again).starts_with("HTTP/1.1 200"));
}

TEST_CASE("who sends much ahead without an answer is closed") {
  Host host(echo);
  Client client(host.port);
  // Each turn answers some of the requests, while far more arrive.
  std::string requests;
  while (requests.size() < 64 * limits::kHttpAheadBytes) requests += "GET /x HTTP/1.1\r\n\r\n";
  client.send(requests);
  std::string text;
  while (!client.receive(1).empty()) {
  }
  while (host.connections() > 0) {
  }
}

namespace {

// Answers "/later" when the test says so, and all else at once.
struct Slow {
  http::Reply operator()(const http::Request& request, const std::string&) {
    if (request.path != "/later") return http::plain(200, request.path);
    return http::Later{[this](std::function<void(http::Response)> answered) {
      const std::lock_guard lock(mutex);
      waiting.push_back(std::move(answered));
      came.notify_all();
    }};
  }
  std::function<void(http::Response)> take() {
    std::unique_lock lock(mutex);
    REQUIRE(came.wait_for(lock, std::chrono::seconds(30), [this] { return !waiting.empty(); }));
    auto taken = std::move(waiting.front());
    waiting.erase(waiting.begin());
    return taken;
  }
  std::mutex mutex;
  std::condition_variable came;
  std::vector<std::function<void(http::Response)>> waiting;
};

}  // namespace

TEST_CASE("an answer that comes later keeps nobody else waiting, and the connection's next request follows it") {
  Slow slow;
  Host host([&](const http::Request& request, const std::string& peer) { return slow(request, peer); });
  Client first(host.port);
  REQUIRE(first.send("POST /later HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n"));
  const auto answer = slow.take();
  Client second(host.port);
  REQUIRE(second.send("GET /now HTTP/1.1\r\n\r\n"));
  CHECK(answer_of(second).ends_with("\r\n\r\n/now\n"));
  REQUIRE(first.send("GET /last HTTP/1.1\r\nConnection: close\r\n\r\n"));
  host.loop.on_loop([&] { answer(http::plain(200, "done")); });
  CHECK(answer_of(first).ends_with("\r\n\r\ndone\n"));
  CHECK(answer_of(first).ends_with("\r\n\r\n/next\n"));
  CHECK(answer_of(first).ends_with("\r\n\r\n/last\n"));
  CHECK(first.ended());
}

TEST_CASE("an answer for a client that has gone, and one for a server that has gone, go nowhere") {
  Slow slow;
  std::function<void(http::Response)> too_late;
  {
    Host host([&](const http::Request& request, const std::string& peer) { return slow(request, peer); });
    {
      Client gone(host.port);
      REQUIRE(gone.send("POST /later HTTP/1.1\r\n\r\n"));
      too_late = slow.take();
    }
    while (host.connections() > 0) {
    }
    host.loop.on_loop([&] { too_late(http::plain(200, "done")); });
    Client other(host.port);
    REQUIRE(other.send("POST /later HTTP/1.1\r\n\r\n"));
    too_late = slow.take();
  }
  too_late(http::plain(200, "done"));
}

TEST_CASE("so many answers may be awaited at once, and one more is refused") {
  Slow slow;
  Host host([&](const http::Request& request, const std::string& peer) { return slow(request, peer); });
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < limits::kHttpLater; ++i) {
    clients.push_back(std::make_unique<Client>(host.port));
    REQUIRE(clients.back()->send("POST /later HTTP/1.1\r\n\r\n"));
    (void)slow.take();
  }
  Client more(host.port);
  REQUIRE(more.send("POST /later HTTP/1.1\r\n\r\n"));
  CHECK(answer_of(more).starts_with("HTTP/1.1 503 "));
}

}  // namespace elastic::net
