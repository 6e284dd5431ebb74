#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/store/keyspace.h"
#include "rendezvous/store/limits.h"

namespace elastic::store::test {

inline const std::string kZero(1, '\0');
inline const std::string kOne(1, '\1');
inline constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// A keyspace with clients that remember what they were answered.
class Clients final : public Outbox {
 public:
  explicit Clients(std::size_t most_bytes = limits::kStoreBytes) : keyspace(most_bytes) {}

  Replies& replies_to(ClientId client) override { return replies_[client]; }

  // What the client was answered since the last look.
  std::string answers(ClientId client) { return std::exchange(replies_[client], {}).whole(); }

  // Carries out a command that must not be refused; returns what its client was answered.
  std::string run(ClientId client, Command command) {
    const auto done = keyspace.apply(client, command, *this);
    CHECK(done.has_value());
    check();
    return answers(client);
  }
  Refusal::Kind refused(ClientId client, Command command) {
    const auto done = keyspace.apply(client, command, *this);
    REQUIRE_FALSE(done.has_value());
    check();
    CHECK(answers(client).empty());
    return done.error().kind;
  }

  std::string set(ClientId client, const std::string& key, const std::string& value) {
    return run(client, with(Op::kSet, key, value));
  }
  std::string get(const std::string& key) { return run(kReader, with(Op::kGet, key)); }
  std::string add(ClientId client, const std::string& key, std::int64_t delta) {
    return run(client, number(Op::kAdd, key, delta));
  }
  std::string compare_set(ClientId client, const std::string& key, const std::string& expected,
                          const std::string& desired) {
    Command command = with(Op::kCompareSet, key, desired);
    command.expected = expected;
    return run(client, command);
  }
  std::string wait(ClientId client, const std::vector<std::string>& keys) { return run(client, list(Op::kWait, keys)); }
  std::string check(const std::vector<std::string>& keys) { return run(kReader, list(Op::kCheck, keys)); }
  std::string barrier(ClientId client, const std::string& key, std::int64_t size) {
    return run(client, number(Op::kBarrier, key, size));
  }
  std::string push(ClientId client, const std::string& key, const std::string& item) {
    return run(client, with(Op::kQueuePush, key, item));
  }
  std::string pop(const std::string& key) { return run(kReader, with(Op::kQueuePop, key)); }

  // A keyspace that holds little is checked after each command.
  void check() const {
    if (keyspace.held_bytes() < 1 << 20) keyspace.check_invariants();
  }

  // Deletes these keys and queues. Returns what is held then: 0 if they were all, and nobody waits.
  std::size_t held_without(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      run(kReader, with(Op::kDeleteKey, key));
      while (pop(key) != std::string(8, '\0')) continue;
    }
    return keyspace.held_bytes();
  }

  static Command with(Op op, const std::string& key, const std::string& value = {}) {
    Command command;
    command.op = op;
    command.key = key;
    command.value = value;
    return command;
  }
  static Command number(Op op, const std::string& key, std::int64_t number) {
    Command command = with(op, key);
    command.number = number;
    return command;
  }
  static Command list(Op op, const std::vector<std::string>& keys, const std::vector<std::string>& values = {}) {
    Command command = with(op, {});
    command.keys = keys;
    command.values = values;
    return command;
  }

  Keyspace keyspace;

 private:
  static constexpr ClientId kReader = 1000;  // asks for what needs no client of its own
  std::map<ClientId, Replies> replies_;
};

}  // namespace elastic::store::test
