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

// A loop with a client, whose server each test makes.
class World {
 public:
  explicit World(const ClientBounds& bounds = {}) : bounds_(bounds) { log::set_level(log::Level::kOff); }
  ~World() {
    loop_.on_loop([&] {
      clients.clear();
      server.reset();
      streams.clear();
      listener.reset();
    });
    log::set_level(log::Level::kWarning);
  }

  // elastic-run's own server.
  World& with_server() {
    on_loop([&] {
      auto opened = Server::open(loop_.loop(), "127.0.0.1", 0);
      REQUIRE(opened.has_value());
      server = std::move(*opened);
      port = server->port();
    });
    return connect();
  }
  // A server that answers with these bytes whenever it has read something that ends with `last`.
  World& with_answer(const std::string& bytes, std::optional<Op> last = {}) {
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
  World& connect(const std::function<void(Client&)>& at_once = {}) {
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
  World world;
  world.with_server();
  const std::vector<std::string> both{"/a", "/b"};
  world.on_loop([&] {
    CHECK(world.client().set("/a", "one").has_value());
    CHECK(world.client().append("/a", "+").has_value());
    const std::vector<std::pair<std::string, std::string>> pairs{{"/b", "two"}};
    CHECK(world.client().multi_set(pairs).has_value());
    CHECK(world.client().queue_push("/q", "job").has_value());
  });
  CHECK(*world.ask<std::string>([](Client& one, auto done) { one.get("/a", done); }) == "one+");
  CHECK(*world.ask<std::string>([](Client& one, auto done) { one.compare_set("/a", "one+", "1", done); }) == "1");
  CHECK(*world.ask<std::int64_t>([](Client& one, auto done) { one.add("/n", -3, done); }) == -3);
  CHECK(*world.ask<bool>([&](Client& one, auto done) { one.check(both, done); }));
  CHECK(*world.ask<bool>([](Client& one, auto done) { one.delete_key("/n", done); }));
  CHECK_FALSE(*world.ask<bool>([](Client& one, auto done) { one.delete_key("/n", done); }));
  CHECK(*world.ask<std::int64_t>([](Client& one, auto done) { one.num_keys(done); }) == 2);
  CHECK(world.ask<std::vector<std::string>>([](Client& one, auto done) { one.list_keys(done); })->size() == 2);
  using Texts = std::vector<std::string>;
  CHECK(*world.ask<Texts>([&](Client& one, auto done) { one.multi_get(both, done); }) == Texts{"1", "two"});
  CHECK(*world.ask<Texts>([&](Client& one, auto done) { one.multi_get({}, done); }) == Texts{});
  CHECK(*world.ask<std::int64_t>([](Client& one, auto done) { one.queue_len("/q", done); }) == 1);
  const auto popped = world.ask<Client::Popped>([](Client& one, auto done) { one.queue_pop("/q", done); });
  CHECK(popped->length_before == 1);
  CHECK(popped->value == "job");
  CHECK(world.ask<Client::Popped>([](Client& one, auto done) { one.queue_pop("/q", done); })->length_before == 0);
  CHECK(world.ask<void>([&](Client& one, auto done) { one.wait(both, kLongMs, done); }).has_value());
  CHECK(world.error_of_ping() == "none");
}

TEST_CASE("requests made before the connection stands, and many at once, are answered in their order") {
  World world;
  world.with_server();
  std::vector<std::int64_t> sums;
  Event last;
  world.on_loop([&] {
    for (int i = 0; i < 1000; ++i) {
      world.client().add("/n", 1, [&](Result<std::int64_t> sum) {
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
  World world;
  world.with_server().connect();
  std::vector<std::string> told;
  Event done;
  world.on_loop([&] {
    const std::vector<std::string> keys{"/a", "/b"};
    world.client().wait(keys, kLongMs, [&](Status status) { told.push_back(status ? "came" : "failed"); });
    world.client().get("/b", [&](Result<std::string> value) {
      told.push_back(*value);
      done.happen();
    });
  });
  CHECK(world.ask<std::int64_t>([](Client& one, auto answer) { one.add("/x", 1, answer); }, 1).has_value());
  CHECK(told.empty());
  world.on_loop([&] {
    CHECK(world.client(1).set("/a", "").has_value());
    CHECK(world.client(1).set("/b", "bee").has_value());
  });
  REQUIRE(done.wait());
  CHECK(told == std::vector<std::string>{"came", "bee"});
}

TEST_CASE("a wait that takes too long fails, its connection goes on, and a later wait is not confused by it") {
  World world;
  world.with_server();
  const std::vector<std::string> never{"/never"};
  for (int i = 0; i < 3; ++i) {
    const auto waited = world.ask<void>([&](Client& one, auto done) { one.wait(never, 5, done); });
    REQUIRE_FALSE(waited.has_value());
    CHECK(world.text_of(waited.error()) == "not all keys came within 5 ms");
    CHECK(world.error_of_ping() == "none");
  }
  world.on_loop([&] { CHECK(world.client().set("/never", "").has_value()); });
  CHECK(world.ask<void>([&](Client& one, auto done) { one.wait(never, kLongMs, done); }).has_value());
}

TEST_CASE("a key that comes just before its wait is cancelled has come") {
  World world;
  world.with_answer(std::string("\0\1", 2), Op::kCancelWait);
  const std::vector<std::string> key{"/k"};
  CHECK(world.ask<void>([&](Client& one, auto done) { one.wait(key, 20, done); }).has_value());
  world.on_loop([&] { CHECK_FALSE(world.client().ended().has_value()); });  // both bytes were its answer
  World never_came;
  never_came.with_answer("\1", Op::kCancelWait);
  CHECK_FALSE(never_came.ask<void>([&](Client& one, auto done) { one.wait(key, 20, done); }).has_value());
}

TEST_CASE("a wait that can't even be sent in time fails, and those before it go on") {
  World world;
  world.with_server();
  const std::vector<std::string> first{"/first"}, second{"/second"};
  Event first_came;
  world.on_loop([&] {
    world.client().wait(first, kLongMs, [&](Status status) {
      CHECK(status.has_value());
      first_came.happen();
    });
  });
  const auto behind = world.ask<void>([&](Client& one, auto done) { one.wait(second, 5, done); });
  REQUIRE_FALSE(behind.has_value());
  CHECK(world.text_of(behind.error()) == "it was still busy with what was asked before");
  world.connect();
  world.on_loop([&] { CHECK(world.client(1).set("/first", "").has_value()); });
  CHECK(first_came.wait());
}

TEST_CASE("the end of a connection is told to each request once, and to those that come later") {
  World world;
  world.with_server();
  CHECK(world.error_of_ping() == "none");
  std::vector<std::string> told;
  Event last;
  world.on_loop([&] {
    const std::vector<std::string> never{"/never"};
    world.client().wait(never, kLongMs, [&](Status status) { told.push_back(world.text_of(status.error())); });
    world.client().get("/k", [&](Result<std::string> value) {
      told.push_back(world.text_of(value.error()));
      last.happen();
    });
    world.server.reset();
  });
  REQUIRE(last.wait());
  CHECK(told == std::vector<std::string>(2, "it closed the connection"));
  CHECK(world.error_of_ping() == "it closed the connection");
  world.on_loop([&] {
    CHECK(world.client().ended().has_value());
    CHECK(world.text_of(world.client().set("/k", "").error()) == "it closed the connection");
  });
}

TEST_CASE("a server that is not there, or does not answer, or answers nonsense is told with its reason") {
  World nobody;
  nobody.with_server();
  nobody.on_loop([&] { nobody.server.reset(); });
  nobody.on_loop([&] { nobody.clients.clear(); });
  nobody.connect();
  CHECK(nobody.error_of_ping() == format("cannot connect to port {} of 127.0.0.1: Connection refused", nobody.port));

  World silent({.answer_ms = 20});
  silent.with_answer("");
  CHECK(silent.error_of_ping() == "it has not answered for 20 ms");

  World other_nonce;
  other_nonce.with_answer("abcd");
  CHECK(other_nonce.error_of_ping().starts_with("its answer makes no sense"));

  World web;
  web.with_answer("HTTP/1.1 400 Bad Request\r\n\r\n");
  const auto got = web.ask<std::string>([](Client& one, auto done) { one.get("/k", done); });
  REQUIRE_FALSE(got.has_value());
  CHECK(web.text_of(got.error()).starts_with("its answer makes no sense: "));
}

TEST_CASE("a request that the store would refuse is not sent, and harms no other") {
  World world;
  world.with_server();
  const std::string long_key(limits::kStoreKeyBytes + 1, 'k');
  const std::vector<std::string> many(limits::kStoreKeysPerCommand + 1);
  world.on_loop([&] {
    CHECK(world.text_of(world.client().set(long_key, "").error()) == "a key of 8193 bytes; at most 8192 are allowed");
    const std::string long_value(limits::kStorePayloadBytes + 1, 'v');
    CHECK_FALSE(world.client().set("/k", long_value).has_value());
  });
  CHECK_FALSE(world.ask<std::string>([&](Client& one, auto done) { one.get(long_key, done); }).has_value());
  CHECK_FALSE(world.ask<bool>([&](Client& one, auto done) { one.check(many, done); }).has_value());
  CHECK(world.error_of_ping() == "none");
}

TEST_CASE("requests that a server does not take are bounded") {
  World world({.unsent_bytes = 1000});
  world.with_answer("");
  world.connect([&](Client& client) {
    const std::string value(400, 'v');
    CHECK(client.set("/a", value).has_value());  // it is kept for the connection
    CHECK(client.set("/b", value).has_value());
    const Status third = client.set("/c", value);
    CHECK(!third.has_value());
    if (!third) CHECK(world.text_of(third.error()).starts_with("it does not take what it is sent; "));
  });
}

TEST_CASE("a client may end within any of its callbacks, and calls no other") {
  World world;
  world.with_server();
  int calls = 0;
  Event called;
  const auto end_client = [&](auto) {
    ++calls;
    world.clients.clear();
    called.happen();
  };
  SUBCASE("after an answer") {
    world.on_loop([&] {
      world.client().ping(end_client);
      world.client().ping([&](auto) { ++calls; });
    });
  }
  SUBCASE("after an error") {
    CHECK(world.error_of_ping() == "none");
    world.on_loop([&] {
      world.client().ping(end_client);
      world.client().ping([&](auto) { ++calls; });
      world.server.reset();
    });
  }
  SUBCASE("after a request that was not sent") {
    const std::string long_key(limits::kStoreKeyBytes + 1, 'k');
    world.on_loop([&] {
      world.client().get(long_key, end_client);
      world.client().get(long_key, [&](auto) { ++calls; });
    });
  }
  CHECK(called.wait());
  world.on_loop([] {});
  CHECK(calls == 1);
}

}  // namespace
}  // namespace elastic::store
