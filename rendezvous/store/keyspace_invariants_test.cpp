// Broken invariants of a keyspace are noticed.
#include <doctest/doctest.h>

#include <string>

#include "rendezvous/store/keyspace.h"
#include "rendezvous/store/keyspace_test_support.h"
#include "src/base/check_test_support.h"

namespace elastic::store {

// Breaks what holds of a keyspace in which client 1 waits for "/a" and "/b", there is a queue "/q" of one item, and
// "/k" is set.
struct KeyspaceBreaker {
  static void count_text(Keyspace& keyspace) { ++keyspace.text_bytes_; }
  static void count_item(Keyspace& keyspace) { ++keyspace.items_; }
  static void count_no_item(Keyspace& keyspace) { --keyspace.items_; }
  static void count_place(Keyspace& keyspace) { ++keyspace.places_; }
  static void count_no_place(Keyspace& keyspace) { keyspace.places_ = 0; }
  static void take_more_than_allowed(Keyspace& keyspace) { keyspace.most_bytes_ = keyspace.held_bytes() - 1; }
  static void set_awaited_key(Keyspace& keyspace) { keyspace.values_["/a"]; }
  static void empty_queue(Keyspace& keyspace) { keyspace.queues_.at("/q").pop_back(); }
  static void empty_list(Keyspace& keyspace) { keyspace.waiters_.at("/a").clear(); }
  static void lose_list(Keyspace& keyspace) { keyspace.waiters_.erase("/a"); }
  static void lose_wait(Keyspace& keyspace) { keyspace.waits_.clear(); }
  static void mistake_client(Keyspace& keyspace) { keyspace.waiters_.at("/a").front().client = 2; }
  static void mistake_place(Keyspace& keyspace) { keyspace.waiters_.at("/a").front().place = 1; }
  static void lose_place(Keyspace& keyspace) { keyspace.waits_.at(1).places[0].key = nullptr; }
  static void miss_none(Keyspace& keyspace) { keyspace.waits_.at(1).missing = 1; }
};

namespace {

// The check that fails once the keyspace was broken so.
std::string noticed(void (*broken)(Keyspace&)) {
  test::Clients clients;
  clients.wait(1, {"/a", "/b"});
  clients.push(2, "/q", "item");
  clients.set(2, "/k", "value");
  broken(clients.keyspace);
  return failed_check([&] { clients.keyspace.check_invariants(); });
}

TEST_CASE("a keyspace that counts what is not there, or not what is, is noticed") {
  using Breaker = KeyspaceBreaker;
  CHECK(noticed([](Keyspace&) {}).empty());
  CHECK(noticed(Breaker::count_text) == "text_bytes_ == text_bytes");
  CHECK(noticed(Breaker::count_item) == "items_ == items");
  CHECK(noticed(Breaker::count_no_item) == "queues_.size() <= items_");
  CHECK(noticed(Breaker::count_place) == "places_ == places");
  CHECK(noticed(Breaker::count_no_place) == "waiters_.size() <= places_ && waits_.size() <= places_");
  CHECK(noticed(Breaker::take_more_than_allowed) == "held_bytes() <= most_bytes_");
  CHECK(noticed(Breaker::empty_queue) == "!queue.empty()");
}

TEST_CASE("a keyspace whose keys and clients do not agree on who waits is noticed") {
  using Breaker = KeyspaceBreaker;
  const std::string of_client = "wait != waits_.end() && waiter.place < wait->second.places.size()";
  const std::string of_place = "place.key == &awaited && &*place.waiter == &waiter";
  CHECK(noticed(Breaker::set_awaited_key) ==
        "waiter.what == WaitsFor::kAllThere || !values_.contains(key) || counted(key, 0, \"BARRIER\")");
  CHECK(noticed(Breaker::empty_list) == "!list.empty()");
  CHECK(noticed(Breaker::lose_list) == "missing == 0");
  CHECK(noticed(Breaker::lose_wait) == "waiters_.empty() == waits_.empty()");
  CHECK(noticed(Breaker::mistake_client) == of_client);
  CHECK(noticed(Breaker::mistake_place) == of_place);
  CHECK(noticed(Breaker::lose_place) == of_place);
  CHECK(noticed(Breaker::miss_none) == "wait.missing > 0 && wait.missing == static_cast<std::size_t>(left)");
}

TEST_CASE("commands check the sizes that they leave behind, and all of a small keyspace, by themselves") {
  for (const auto broken : {KeyspaceBreaker::take_more_than_allowed, KeyspaceBreaker::count_text}) {
    test::Clients clients;
    clients.set(1, "/k", "value");
    broken(clients.keyspace);
    Command command = test::Clients::with(Op::kPing, "");
    int commands = 0;
    while (commands < 1000 && failed_check([&] { (void)clients.keyspace.apply(1, command, clients); }).empty())
      ++commands;
    CHECK(commands < 80);
  }
}

}  // namespace
}  // namespace elastic::store
