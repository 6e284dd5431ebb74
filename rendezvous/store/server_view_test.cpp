#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/store/server.h"
#include "rendezvous/store/test_requests.h"
#include "src/net/test_loop.h"

namespace elastic::store {
namespace {

using namespace test;
using net::test::Client;
using net::test::LoopThread;

class Store {
 public:
  Store() {
    loop_.on_loop([&] {
      auto opened = Server::open(loop_.loop(), "127.0.0.1", 0);
      REQUIRE(opened.has_value());
      server_ = std::move(*opened);
    });
  }
  ~Store() {
    loop_.on_loop([&] { server_.reset(); });
  }

  // A client whose requests have been carried out: the reply to a PING behind them says it. A WAIT that waits must be
  // the last one.
  Client client(const std::string& requests) {
    Client made(port());
    REQUIRE(made.send(kHello + requests + ping("1234")));
    REQUIRE(made.receive(4) == "1234");
    return made;
  }
  void ask_for_dumps() {
    loop_.on_loop([&] { server_->ask_for_dumps(); });
  }
  // It waits when the view has as many clients as it should.
  StoreView view_of(std::size_t waiting, int world_size) {
    StoreView view;
    do {
      loop_.on_loop([&] { view = server_->view(world_size); });
    } while (view.waiting.size() != waiting);
    return view;
  }

 private:
  std::uint16_t port() {
    std::uint16_t port = 0;
    loop_.on_loop([&] { port = server_->port(); });
    return port;
  }

  LoopThread loop_;
  std::unique_ptr<Server> server_;
};

std::string init(int rank) { return "/default_pg/0//cpu//0/" + std::to_string(rank); }

}  // namespace

TEST_CASE("a view of a store has those who wait with the keys that are not there, and who has come to that init") {
  Store store;
  Client setter = store.client(set(init(0), "a") + set(init(2), "b") +
                               set("/default_pg/1//cpu//0/1", "of another init") + set("other", "c"));
  Client first = store.client("");
  REQUIRE(first.send(wait({init(0), init(1)})));
  const StoreView one = store.view_of(1, 4);
  CHECK(one.waiting[0].keys == std::vector{init(1)});
  CHECK(one.waiting[0].peer.starts_with("127.0.0.1:"));
  CHECK(one.init_keys == std::vector{init(0), init(2)});
  CHECK(!one.first_to_time_out);
  CHECK(!one.has_more);
  Client second = store.client("");
  REQUIRE(second.send(wait({"mine"})));
  const StoreView two = store.view_of(2, 4);
  CHECK(two.waiting[1].keys == std::vector<std::string>{"mine"});
  Client last = store.client(set(init(1), "d"));
  CHECK(store.view_of(1, 4).init_keys.empty());
}

TEST_CASE("a view of a store has the rank that has set /exception_dump, and -1 for what is no rank") {
  Store store;
  const std::int32_t rank = 5;
  std::string bytes(sizeof rank, '\0');
  std::memcpy(bytes.data(), &rank, sizeof rank);
  Client setter = store.client(set("/exception_dump", bytes));
  CHECK(store.view_of(0, 8).first_to_time_out == 5);
  Client other = store.client(set("/exception_dump", "no rank"));
  CHECK(store.view_of(0, 8).first_to_time_out == -1);
}

TEST_CASE(
    "a store asks for dumps as PyTorch does, with four bytes that name no rank, and wakes who waits for the key") {
  Store store;
  Client waiting = store.client("");
  REQUIRE(waiting.send(wait({"/exception_dump"})));
  CHECK(!store.view_of(1, 8).first_to_time_out);
  store.ask_for_dumps();
  CHECK(waiting.receive(1) == std::string(1, '\0'));
  CHECK(store.view_of(0, 8).first_to_time_out == -1);
  REQUIRE(waiting.send(get("/exception_dump")));
  const std::string four_bytes("\4\0\0\0\0\0\0\0\xff\xff\xff\xff", 12);
  CHECK(waiting.receive(12) == four_bytes);
}

TEST_CASE("a store that asks for dumps leaves the name of the rank that has asked before") {
  Store store;
  const std::string rank_5("\5\0\0\0", 4);
  Client setter = store.client(set("/exception_dump", rank_5));
  store.ask_for_dumps();
  CHECK(store.view_of(0, 8).first_to_time_out == 5);
}

TEST_CASE("a view of a store has its bounds: a long key, and more keys of a client than that, are left out") {
  Store store;
  Client one = store.client("");
  std::vector<std::string> keys{std::string(kViewKeyBytes + 1, 'x')};
  for (std::size_t i = 0; i < kViewKeysOfClient + 2; ++i) keys.push_back("key" + std::to_string(i));
  REQUIRE(one.send(wait(keys)));
  const StoreView view = store.view_of(1, 2);
  CHECK(view.waiting[0].keys.size() == kViewKeysOfClient);
  CHECK(view.has_more);
}

}  // namespace elastic::store
