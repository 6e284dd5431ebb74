#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/store/codec.h"
#include "rendezvous/store/limits.h"
#include "rendezvous/store/replies.h"
#include "rendezvous/store/value.h"

namespace elastic::store {

// The number of a connection, which is never given to another one.
using ClientId = std::uint64_t;

// Where a keyspace puts its replies.
class Outbox {
 public:
  // The replies of a client, to append to. Called for the client of a command and for those that wait. The reference
  // must be valid until apply() returns.
  virtual Replies& replies_to(ClientId client) = 0;

 protected:
  ~Outbox() = default;
};

// The keys, queues and waiting clients of one round. Each command does what PyTorch's TCPStore server does (libuv
// backend of torch 2.15), except for the differences that docs/store-protocol.md lists.
class Keyspace {
 public:
  // `most_bytes` is the bound of held_bytes().
  explicit Keyspace(std::size_t most_bytes = limits::kStoreBytes) : most_bytes_(most_bytes) {}
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;

  // Carries out one command, whose strings it may move away, and appends the replies to this client and to waiting
  // ones. A refusal means that the client's connection must be closed: nothing has changed and nothing was appended.
  // Whether a command has room is judged as if all of its keys were new.
  std::expected<void, Refusal> apply(ClientId client, Command& command, Outbox& outbox);

  // Forgets what the client waits for. To be called when its connection has ended.
  void drop(ClientId client);

  std::size_t keys() const { return values_.size(); }

  // The bytes of all keys, values, items and awaited keys, with what limits.h counts for each of them. 0 if there are
  // no keys, queues and waits.
  std::size_t held_bytes() const {
    return text_bytes_ + (values_.size() + waiters_.size()) * limits::kStoreEntryBytes +
           queues_.size() * limits::kStoreQueueBytes + items_ * limits::kStoreItemBytes +
           waits_.size() * limits::kStoreWaitBytes + places_ * limits::kStorePlaceBytes;
  }

  // The bytes that replies hold and that are in no key or queue any more: values that were replaced or deleted since,
  // popped items, copies. They are not part of held_bytes().
  const LooseBytesPtr& loose() const { return loose_; }

  // Calls visit(client, key) for each key that a client waits for and that is not set, in no order.
  void each_wait(const auto& visit) const {
    for (const auto& [client, wait] : waits_) {
      for (const Place& place : wait.places) {
        if (place.key != nullptr && !values_.contains(place.key->first))
          visit(client, std::string_view(place.key->first));
      }
    }
  }
  // Whether a key is set, and the first bytes of its value: all of them if it is short. Empty if it is not set.
  bool has_key(std::string_view key) const { return values_.contains(key); }
  std::optional<std::string_view> beginning_of(std::string_view key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return {};
    return found->second.beginning();
  }

  // Visits all keys, queues and waits: what is counted is there, and keys and clients agree on who waits. Commands call
  // it by themselves, as often as costs them little; a test may call it after each of them.
  void check_invariants() const;

 private:
  friend struct KeyspaceBreaker;  // a test's

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  template <class Of>
  using Map = std::unordered_map<std::string, Of, Hash, std::equal_to<>>;

  // Callers of BARRIER wait for a key that exists already; a queue push does not release them.
  enum class WaitsFor : std::uint8_t { kKey, kAllThere };
  // One client's wait for one key: the index `place` in its Wait.
  struct Waiter {
    ClientId client;
    std::size_t place;
    WaitsFor what;
  };
  using WaitList = std::list<Waiter>;  // longest waiting first
  struct Place {
    Map<WaitList>::pointer key;  // in waiters_; null once that key is set
    WaitList::iterator waiter;
  };
  // All keys that one client waits for.
  struct Wait {
    std::vector<Place> places;
    std::size_t missing = 0;
  };

  void compare_set(Command& command, Replies& out, Outbox& outbox);
  void get(std::string_view key, Replies& out) const;
  std::expected<void, Refusal> add(Command& command, Replies& out, Outbox& outbox);
  void delete_key(std::string_view key, Replies& out);
  void append(Command& command, Outbox& outbox);
  void multi_get(const Command& command, Replies& out) const;
  void multi_set(Command& command, Outbox& outbox);
  void list_keys(Replies& out) const;
  void queue_push(Command& command, Outbox& outbox);
  void queue_pop(std::string_view key, Replies& out);
  std::int64_t queue_length(std::string_view key) const;
  std::expected<void, Refusal> wait(ClientId client, Command& command, Replies& out);
  std::expected<void, Refusal> barrier(ClientId client, Command& command, Replies& out, Outbox& outbox);

  // What apply() does, without a look at the result.
  std::expected<void, Refusal> carry_out(ClientId client, Command& command, Outbox& outbox);
  // What can be checked at once, whatever the number of keys is.
  void check_sizes() const;
  // The clients that wait for keys, and the keys that they wait for.
  void check_waits() const;
  // The most bytes that a command may add to held_bytes().
  static std::size_t most_added_by(const Command& command);
  bool has_room(const Command& command) const;
  std::expected<void, Refusal> no_room() const;  // always a refusal
  bool present(std::string_view key) const;
  bool all_present(const std::vector<std::string>& keys) const;
  // The number at a key, or 0 if the key is missing, plus `delta`. `request` is the name of the request in a refusal.
  std::expected<std::int64_t, Refusal> counted(std::string_view key, std::int64_t delta,
                                               std::string_view request) const;
  // Sets a key and wakes the clients that wait for it. Returns the stored value.
  const Value& store(std::string&& key, std::string&& value, Outbox& outbox);
  // The value of a key, which is made if it is missing. No client is woken.
  Map<Value>::iterator value_at(std::string&& key);
  void replace(Value& value, std::string&& by);
  void add_place(ClientId client, std::string key, WaitsFor what);
  void wake_all(std::string_view key, Outbox& outbox);
  void wake_one(std::string_view key, Outbox& outbox);
  void arrived(const Waiter& waiter, Outbox& outbox);
  void forget_awaited(Map<WaitList>::iterator key);
  void forget_wait(std::unordered_map<ClientId, Wait>::iterator wait);

  std::size_t most_bytes_;
  std::size_t text_bytes_ = 0;  // of all keys, values, items and awaited keys
  std::size_t items_ = 0;       // of all queues
  std::size_t places_ = 0;      // of all waits
  LooseBytesPtr loose_ = std::make_shared<LooseBytes>();
  Map<Value> values_;
  Map<std::deque<Value>> queues_;  // no queue here is empty
  Map<WaitList> waiters_;          // no list here is empty
  std::unordered_map<ClientId, Wait> waits_;
  std::size_t commands_ = 0;  // since all of it was checked
};

}  // namespace elastic::store
