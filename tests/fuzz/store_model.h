#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// What docs/store-protocol.md says, in the plainest form: the fuzzer holds the real store to it.
// Nothing of rendezvous/store is used here, and no step is clever.
namespace elastic::store_model {

using Client = std::uint64_t;

// Why a connection is closed.
enum class Closed : std::uint8_t {
  kStranger,  // the first five bytes are not VALIDATE and its magic
  kUnknownRequest,
  kSecondValidate,
  kKeyTooLong,
  kValueTooLong,
  kTooManyKeys,
  kNotANumber,
  kOutOfRange,
  kStoreFull,
};

// One request carried out: what each client is answered because of it. The keys in the reply to
// LIST_KEYS, which has no order, are sorted.
struct Step {
  std::uint8_t number = 0;
  std::map<Client, std::string> replies;
  bool operator==(const Step&) const = default;
};

// What some bytes of one client lead to.
struct Outcome {
  std::vector<Step> steps;
  std::optional<Closed> closed;
  bool operator==(const Outcome&) const = default;
};

class Model {
 public:
  explicit Model(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // A client sends more bytes. Where that closes its connection it has left, too.
  Outcome receive(Client client, std::string_view bytes);
  // A client's connection ends.
  void leave(Client client);

  // Bytes of the client's unfinished request; 0 if it has sent only whole ones.
  std::size_t unfinished_bytes(Client client) const;

  const std::map<std::string, std::string>& values() const { return values_; }
  const std::map<std::string, std::deque<std::string>>& queues() const { return queues_; }
  // What docs/limits.md counts for all of them.
  std::size_t held_bytes() const;
  // What all that took so far, in texts that it read and things that it counted.
  std::size_t steps() const { return steps_; }

 private:
  struct Request {
    std::uint8_t number = 0;
    std::string key;
    std::string value;
    std::string expected;
    std::int64_t amount = 0;
    std::uint32_t nonce = 0;
    std::vector<std::string> keys;
    std::vector<std::string> values;
  };
  struct Connection {
    std::string bytes;  // not yet understood
    bool greeted = false;
  };
  struct Wait {
    Client client;
    std::set<std::string> missing;
    bool is_barrier;
    std::size_t keys;  // how many were missing when it began
  };
  class Reader;

  static void read_request(Reader& reader, Request& request);
  // The reply to the request, if it is not refused; wakes others by `step`.
  std::optional<Closed> carry_out(Client client, const Request& request, Step& step);
  bool has_room_for(const Request& request) const;
  std::optional<Closed> count(const std::string& key, std::int64_t delta, std::int64_t& sum) const;
  bool present(const std::string& key) const;
  bool all_present(const std::vector<std::string>& keys) const;
  void set(const std::string& key, const std::string& value, Step& step);
  void came(const std::string& key, Step& step);
  void pushed(const std::string& key, Step& step);
  void forget_wait(Client client);

  std::size_t most_bytes_;
  mutable std::size_t steps_ = 0;
  std::map<Client, Connection> connections_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::deque<std::string>> queues_;
  std::vector<Wait> waits_;  // the longest first
};

}  // namespace elastic::store_model
