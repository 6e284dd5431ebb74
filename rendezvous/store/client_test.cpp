#include "rendezvous/store/client.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/store/requests.h"
#include "rendezvous/store/server.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/test_loop.h"

namespace elastic::store {
namespace {

using net::test::Event;
using net::test::LoopThread;

// Both ends of connections, on a loop: clients, and the server that each test makes for them.
class Ends {
 public:
  explicit Ends(const ClientBounds& bounds = {}) : bounds_(bounds) { log::set_level(log::Level::kOff); }
  ~Ends() {
    loop_.on_loop([&] {
      clients.clear();
      server.reset();
      streams.clear();
      listener.reset();
    });
    log::set_level(log::Level::kWarning);
  }

  // elastic-run's own server.
  Ends& with_server() {
    on_loop([&] {
      auto opened = Server::open(loop_.loop(), "127.0.0.1", 0);
      REQUIRE(opened.has_value());
      server = std::move(*opened);
      port = server->port();
    });
    return connect();
  }
  // A server that answers with these bytes whenever it has read something of a request. What a client says first, which
  // may come by itself, has no answer.
  Ends& with_answer(const std::string& bytes) {
    std::string hello;
    put_hello(hello);
    on_loop([&] {
      auto opened = net::Listener::open(loop_.loop(), "127.0.0.1", 0, [this, bytes, hello](auto stream) {
        net::Stream* const one = stream.get();
        streams.push_back(std::move(stream));
        const auto answer = [one, bytes, unread = hello.size()](Bytes piece) mutable {
          const bool asks = piece.size() > unread;
          unread -= std::min(unread, piece.size());
          if (asks) one->write(std::string(bytes));
        };
        one->start({.on_data = answer, .on_end = {}});
      });
      REQUIRE(opened.has_value());
      listener = std::move(*opened);
      port = listener->port();
    });
    return connect();
  }
  // Adds a client at the end of `clients`. `at_once` is called before it can be connected.
  Ends& connect(const std::function<void(Client&)>& at_once = {}) {
    on_loop([&] {
      clients.push_back(std::make_unique<Client>(loop_.loop(), "127.0.0.1", port, bounds_));
      if (at_once) at_once(*clients.back());
    });
    return *this;
  }

  void on_loop(const std::function<void()>& task) { loop_.on_loop(task); }
  Client& client() { return *clients.back(); }

  // The result of a request. `request` gets the callback.
  Result<std::string> ask(const std::function<void(Client&, Client::Done)>& request) {
    std::promise<Result<std::string>> promise;
    auto future = promise.get_future();
    on_loop(
        [&] { request(client(), [&promise](Result<std::string> result) { promise.set_value(std::move(result)); }); });
    REQUIRE(future.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
    return future.get();
  }
  Result<std::string> get(const std::string& key) {
    return ask([&](Client& one, auto done) { one.get(key, done); });
  }
  Result<std::string> compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
    return ask([&](Client& one, auto done) { one.compare_set(key, expected, desired, done); });
  }
  // The error of a GET, without "store at port P of 127.0.0.1: ".
  std::string error_of_get(const std::string& key = "/k") {
    const auto result = get(key);
    return result ? "none" : text_of(result.error());
  }
  std::string text_of(const Error& error) const {
    const std::string text = error.text();
    const std::string start = format("store at port {} of 127.0.0.1: ", port);
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }

  std::vector<std::unique_ptr<Client>> clients;
  std::unique_ptr<Server> server;
  std::unique_ptr<net::Listener> listener;
  std::vector<std::unique_ptr<net::Stream>> streams;
  std::uint16_t port = 0;

 private:
  ClientBounds bounds_;
  LoopThread loop_;
};

TEST_CASE("a client reads a value, and replaces it if it is the expected one") {
  Ends ends;
  ends.with_server();
  CHECK(*ends.get("/a") == "");
  CHECK(*ends.compare_set("/a", "", "one") == "one");
  CHECK(*ends.compare_set("/a", "two", "three") == "one");
  CHECK(*ends.get("/a") == "one");
}

TEST_CASE("requests made before the connection stands, and many at once, are answered in their order") {
  Ends ends;
  ends.with_server();
  std::vector<std::string> values;
  Event last;
  ends.connect([&](Client& client) {
    for (int i = 0; i < 1000; ++i) {
      const std::string before = i == 0 ? "" : std::to_string(i - 1);
      client.compare_set("/n", before, std::to_string(i), [&](Result<std::string> value) {
        values.push_back(*value);
        if (values.size() == 1000) last.happen();
      });
    }
    CHECK(values.empty());
  });
  REQUIRE(last.wait());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == std::to_string(i));
}

TEST_CASE("the end of a connection is told to each request once, and to those that come later") {
  Ends ends;
  ends.with_answer(std::string(8, '\0'));
  CHECK(ends.error_of_get() == "none");
  std::vector<std::string> told;
  Event last;
  ends.on_loop([&] {
    for (int i = 0; i < 2; ++i) {
      ends.client().get("/k", [&](Result<std::string> value) {
        told.push_back(ends.text_of(value.error()));
        if (told.size() == 2) last.happen();
      });
    }
    ends.streams.clear();
  });
  REQUIRE(last.wait());
  CHECK(told == std::vector<std::string>(2, "it closed the connection"));
  CHECK(ends.error_of_get() == "it closed the connection");
  ends.on_loop([&] { CHECK(ends.client().ended().has_value()); });
}

TEST_CASE("a server that is not there, or does not answer, or answers nonsense is told with its reason") {
  Ends nobody;
  nobody.with_server();
  nobody.on_loop([&] { nobody.server.reset(); });
  nobody.on_loop([&] { nobody.clients.clear(); });
  nobody.connect();
  CHECK(nobody.error_of_get() == format("cannot connect to port {} of 127.0.0.1: Connection refused", nobody.port));

  Ends silent({.answer_ms = 20});
  silent.with_answer("");
  CHECK(silent.error_of_get() == "it has not answered for 20 ms");

  Ends web;
  web.with_answer("HTTP/1.1 400 Bad Request\r\n\r\n");
  CHECK(web.error_of_get().starts_with("its answer makes no sense: "));
}

TEST_CASE("a request that the store would refuse is not sent, and harms no other") {
  Ends ends;
  ends.with_server();
  CHECK(ends.error_of_get(std::string(limits::kStoreKeyBytes + 1, 'k')) ==
        "a key of 8193 bytes; at most 8192 are allowed");
  const std::string long_value(limits::kStorePayloadBytes + 1, 'v');
  CHECK_FALSE(ends.compare_set("/k", "", long_value).has_value());
  CHECK_FALSE(ends.compare_set("/k", long_value, "").has_value());
  CHECK(ends.error_of_get() == "none");
}

TEST_CASE("requests that a server does not take are bounded") {
  Ends ends({.unsent_bytes = 1000});
  ends.with_answer("");
  std::string told;
  Event failed;
  ends.connect([&](Client& client) {
    for (int i = 0; i < 3; ++i) {
      client.compare_set("/a", "", std::string(400, 'v'), [&, i](Result<std::string> value) {
        told += format("{}: {}", i, ends.text_of(value.error()));
        failed.happen();
      });
    }
  });
  REQUIRE(failed.wait());
  CHECK(told.starts_with("2: it does not take what it is sent; "));
}

TEST_CASE("a client may end within any of its callbacks, and calls no other") {
  Ends ends;
  ends.with_answer(std::string(8, '\0'));
  int calls = 0;
  Event called;
  const auto end_client = [&](auto) {
    ++calls;
    ends.clients.clear();
    called.happen();
  };
  const auto ask_twice = [&](const std::string& key) {
    ends.client().get(key, end_client);
    ends.client().get(key, [&](auto) { ++calls; });
  };
  SUBCASE("after an answer") {
    ends.on_loop([&] { ask_twice("/k"); });
  }
  SUBCASE("after an error") {
    CHECK(ends.error_of_get() == "none");
    ends.on_loop([&] {
      ask_twice("/k");
      ends.streams.clear();
    });
  }
  SUBCASE("after a request that was not sent") {
    ends.on_loop([&] { ask_twice(std::string(limits::kStoreKeyBytes + 1, 'k')); });
  }
  CHECK(called.wait());
  ends.on_loop([] {});
  CHECK(calls == 1);
}

}  // namespace
}  // namespace elastic::store
