#include "rendezvous/store/client.h"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/store/server.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/test_loop.h"

namespace elastic::store {
namespace {

using net::test::Event;
using net::test::LoopThread;

constexpr std::int64_t kLongMs = 10'000;

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
  // A server that answers with these bytes whenever it has read something that ends with `last`.
  Ends& with_answer(const std::string& bytes, std::optional<Op> last = {}) {
    on_loop([&] {
      auto opened = net::Listener::open(loop_.loop(), "127.0.0.1", 0, [this, bytes, last](auto stream) {
        net::Stream* const one = stream.get();
        streams.push_back(std::move(stream));
        const auto answer = [one, bytes, last](Bytes piece) {
          if (!last || piece.back() == static_cast<std::uint8_t>(*last)) one->write(std::string(bytes));
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
  Client& client(std::size_t index = 0) { return *clients[index]; }

  // The result of a request. `request` gets the callback.
  template <class T>
  Result<T> ask(const std::function<void(Client&, Client::Done<T>)>& request, std::size_t index = 0) {
    std::promise<Result<T>> promise;
    auto future = promise.get_future();
    on_loop([&] { request(client(index), [&promise](Result<T> result) { promise.set_value(std::move(result)); }); });
    REQUIRE(future.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
    return future.get();
  }
  // The error of a PING, without "store at port P of 127.0.0.1: ".
  std::string error_of_ping() {
    const auto result = ask<void>([](Client& one, auto done) { one.ping(done); });
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

TEST_CASE("each request of a client is answered by the store") {
  Ends ends;
  ends.with_server();
  const std::vector<std::string> both{"/a", "/b"};
  ends.on_loop([&] {
    CHECK(ends.client().set("/a", "one").has_value());
    CHECK(ends.client().append("/a", "+").has_value());
    const std::vector<std::pair<std::string, std::string>> pairs{{"/b", "two"}};
    CHECK(ends.client().multi_set(pairs).has_value());
    CHECK(ends.client().queue_push("/q", "job").has_value());
  });
  CHECK(*ends.ask<std::string>([](Client& one, auto done) { one.get("/a", done); }) == "one+");
  CHECK(*ends.ask<std::string>([](Client& one, auto done) { one.compare_set("/a", "one+", "1", done); }) == "1");
  CHECK(*ends.ask<std::int64_t>([](Client& one, auto done) { one.add("/n", -3, done); }) == -3);
  CHECK(*ends.ask<bool>([&](Client& one, auto done) { one.check(both, done); }));
  CHECK(*ends.ask<bool>([](Client& one, auto done) { one.delete_key("/n", done); }));
  CHECK_FALSE(*ends.ask<bool>([](Client& one, auto done) { one.delete_key("/n", done); }));
  CHECK(*ends.ask<std::int64_t>([](Client& one, auto done) { one.num_keys(done); }) == 2);
  CHECK(ends.ask<std::vector<std::string>>([](Client& one, auto done) { one.list_keys(done); })->size() == 2);
  using Texts = std::vector<std::string>;
  CHECK(*ends.ask<Texts>([&](Client& one, auto done) { one.multi_get(both, done); }) == Texts{"1", "two"});
  CHECK(*ends.ask<Texts>([&](Client& one, auto done) { one.multi_get({}, done); }) == Texts{});
  CHECK(*ends.ask<std::int64_t>([](Client& one, auto done) { one.queue_len("/q", done); }) == 1);
  const auto popped = ends.ask<Client::Popped>([](Client& one, auto done) { one.queue_pop("/q", done); });
  CHECK(popped->length_before == 1);
  CHECK(popped->value == "job");
  CHECK(ends.ask<Client::Popped>([](Client& one, auto done) { one.queue_pop("/q", done); })->length_before == 0);
  CHECK(ends.ask<void>([&](Client& one, auto done) { one.wait(both, kLongMs, done); }).has_value());
  CHECK(ends.error_of_ping() == "none");
}

TEST_CASE("requests made before the connection stands, and many at once, are answered in their order") {
  Ends ends;
  ends.with_server();
  std::vector<std::int64_t> sums;
  Event last;
  ends.on_loop([&] {
    for (int i = 0; i < 1000; ++i) {
      ends.client().add("/n", 1, [&](Result<std::int64_t> sum) {
        sums.push_back(*sum);
        if (sums.size() == 1000) last.happen();
      });
    }
    CHECK(sums.empty());
  });
  REQUIRE(last.wait());
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == static_cast<std::int64_t>(i) + 1);
}

TEST_CASE("a wait ends when the last key comes, and what was asked after it is answered then") {
  Ends ends;
  ends.with_server().connect();
  std::vector<std::string> told;
  Event done;
  ends.on_loop([&] {
    const std::vector<std::string> keys{"/a", "/b"};
    ends.client().wait(keys, kLongMs, [&](Status status) { told.push_back(status ? "came" : "failed"); });
    ends.client().get("/b", [&](Result<std::string> value) {
      told.push_back(*value);
      done.happen();
    });
  });
  CHECK(ends.ask<std::int64_t>([](Client& one, auto answer) { one.add("/x", 1, answer); }, 1).has_value());
  CHECK(told.empty());
  ends.on_loop([&] {
    CHECK(ends.client(1).set("/a", "").has_value());
    CHECK(ends.client(1).set("/b", "bee").has_value());
  });
  REQUIRE(done.wait());
  CHECK(told == std::vector<std::string>{"came", "bee"});
}

TEST_CASE("a wait that takes too long fails, its connection goes on, and a later wait is not confused by it") {
  Ends ends;
  ends.with_server();
  const std::vector<std::string> never{"/never"};
  for (int i = 0; i < 3; ++i) {
    const auto waited = ends.ask<void>([&](Client& one, auto done) { one.wait(never, 5, done); });
    REQUIRE_FALSE(waited.has_value());
    CHECK(ends.text_of(waited.error()) == "not all keys came within 5 ms");
    CHECK(ends.error_of_ping() == "none");
  }
  ends.on_loop([&] { CHECK(ends.client().set("/never", "").has_value()); });
  CHECK(ends.ask<void>([&](Client& one, auto done) { one.wait(never, kLongMs, done); }).has_value());
}

TEST_CASE("a key that comes just before its wait is cancelled has come") {
  Ends ends;
  ends.with_answer(std::string("\0\1", 2), Op::kCancelWait);
  const std::vector<std::string> key{"/k"};
  CHECK(ends.ask<void>([&](Client& one, auto done) { one.wait(key, 20, done); }).has_value());
  ends.on_loop([&] { CHECK_FALSE(ends.client().ended().has_value()); });  // both bytes were its answer
  Ends never_came;
  never_came.with_answer("\1", Op::kCancelWait);
  CHECK_FALSE(never_came.ask<void>([&](Client& one, auto done) { one.wait(key, 20, done); }).has_value());
}

TEST_CASE("a wait that can't even be sent in time fails, and those before it go on") {
  Ends ends;
  ends.with_server();
  const std::vector<std::string> first{"/first"}, second{"/second"};
  Event first_came;
  ends.on_loop([&] {
    ends.client().wait(first, kLongMs, [&](Status status) {
      CHECK(status.has_value());
      first_came.happen();
    });
  });
  const auto behind = ends.ask<void>([&](Client& one, auto done) { one.wait(second, 5, done); });
  REQUIRE_FALSE(behind.has_value());
  CHECK(ends.text_of(behind.error()) == "it was still busy with what was asked before");
  ends.connect();
  ends.on_loop([&] { CHECK(ends.client(1).set("/first", "").has_value()); });
  CHECK(first_came.wait());
}

TEST_CASE("the end of a connection is told to each request once, and to those that come later") {
  Ends ends;
  ends.with_server();
  CHECK(ends.error_of_ping() == "none");
  std::vector<std::string> told;
  Event last;
  ends.on_loop([&] {
    const std::vector<std::string> never{"/never"};
    ends.client().wait(never, kLongMs, [&](Status status) { told.push_back(ends.text_of(status.error())); });
    ends.client().get("/k", [&](Result<std::string> value) {
      told.push_back(ends.text_of(value.error()));
      last.happen();
    });
    ends.server.reset();
  });
  REQUIRE(last.wait());
  CHECK(told == std::vector<std::string>(2, "it closed the connection"));
  CHECK(ends.error_of_ping() == "it closed the connection");
  ends.on_loop([&] {
    CHECK(ends.client().ended().has_value());
    CHECK(ends.text_of(ends.client().set("/k", "").error()) == "it closed the connection");
  });
}

TEST_CASE("a server that is not there, or does not answer, or answers nonsense is told with its reason") {
  Ends nobody;
  nobody.with_server();
  nobody.on_loop([&] { nobody.server.reset(); });
  nobody.on_loop([&] { nobody.clients.clear(); });
  nobody.connect();
  CHECK(nobody.error_of_ping() == format("cannot connect to port {} of 127.0.0.1: Connection refused", nobody.port));

  Ends silent({.answer_ms = 20});
  silent.with_answer("");
  CHECK(silent.error_of_ping() == "it has not answered for 20 ms");

  Ends other_nonce;
  other_nonce.with_answer("abcd");
  CHECK(other_nonce.error_of_ping().starts_with("its answer makes no sense"));

  Ends web;
  web.with_answer("HTTP/1.1 400 Bad Request\r\n\r\n");
  const auto got = web.ask<std::string>([](Client& one, auto done) { one.get("/k", done); });
  REQUIRE_FALSE(got.has_value());
  CHECK(web.text_of(got.error()).starts_with("its answer makes no sense: "));
}

TEST_CASE("a request that the store would refuse is not sent, and harms no other") {
  Ends ends;
  ends.with_server();
  const std::string long_key(limits::kStoreKeyBytes + 1, 'k');
  const std::vector<std::string> many(limits::kStoreKeysPerCommand + 1);
  ends.on_loop([&] {
    CHECK(ends.text_of(ends.client().set(long_key, "").error()) == "a key of 8193 bytes; at most 8192 are allowed");
    const std::string long_value(limits::kStorePayloadBytes + 1, 'v');
    CHECK_FALSE(ends.client().set("/k", long_value).has_value());
  });
  CHECK_FALSE(ends.ask<std::string>([&](Client& one, auto done) { one.get(long_key, done); }).has_value());
  CHECK_FALSE(ends.ask<bool>([&](Client& one, auto done) { one.check(many, done); }).has_value());
  CHECK(ends.error_of_ping() == "none");
}

TEST_CASE("requests that a server does not take are bounded") {
  Ends ends({.unsent_bytes = 1000});
  ends.with_answer("");
  ends.connect([&](Client& client) {
    const std::string value(400, 'v');
    CHECK(client.set("/a", value).has_value());  // it is kept for the connection
    CHECK(client.set("/b", value).has_value());
    const Status third = client.set("/c", value);
    CHECK(!third.has_value());
    if (!third) CHECK(ends.text_of(third.error()).starts_with("it does not take what it is sent; "));
  });
}

TEST_CASE("a client may end within any of its callbacks, and calls no other") {
  Ends ends;
  ends.with_server();
  int calls = 0;
  Event called;
  const auto end_client = [&](auto) {
    ++calls;
    ends.clients.clear();
    called.happen();
  };
  SUBCASE("after an answer") {
    ends.on_loop([&] {
      ends.client().ping(end_client);
      ends.client().ping([&](auto) { ++calls; });
    });
  }
  SUBCASE("after an error") {
    CHECK(ends.error_of_ping() == "none");
    ends.on_loop([&] {
      ends.client().ping(end_client);
      ends.client().ping([&](auto) { ++calls; });
      ends.server.reset();
    });
  }
  SUBCASE("after a request that was not sent") {
    const std::string long_key(limits::kStoreKeyBytes + 1, 'k');
    ends.on_loop([&] {
      ends.client().get(long_key, end_client);
      ends.client().get(long_key, [&](auto) { ++calls; });
    });
  }
  CHECK(called.wait());
  ends.on_loop([] {});
  CHECK(calls == 1);
}

}  // namespace
}  // namespace elastic::store
