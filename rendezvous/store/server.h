#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/store/keyspace.h"
#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::store {

// A worker store: one listening port, its connections and the keyspace they share.
class Server final : private Outbox {
 public:
  struct Stats {
    std::size_t connections = 0;  // now
    std::size_t keys = 0;         // now
    std::uint64_t accepted = 0;   // the rest since open()
    std::uint64_t refused = 0;    // closed for what they sent or did not read
    std::uint64_t commands = 0;
  };

  // Listens on a numeric address, or on all addresses if it is empty; port 0 takes a free one.
  // Serves from the next turn of the loop on. Fails as net::Listener::open does.
  // Who has not said VALIDATE `greeting_ms` after it connected is disconnected.
  static Result<std::unique_ptr<Server>> open(net::Loop& loop, const std::string& address, std::uint16_t port,
                                              std::int64_t greeting_ms = limits::kStoreGreetingMs);
  // Closes the port and every connection.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return listener_->port(); }

  // Starts a new round on the same port: closes every connection, also those that wait in the
  // accept queue, and replaces the keyspace by an empty one. Whoever connects after it sees only
  // new keys; so call it when the last process of the old round has gone.
  void reset();

  Stats stats() const;

 private:
  struct Connection;

  Server(net::Loop& loop, std::int64_t greeting_ms);
  void accept(std::unique_ptr<net::Stream> stream);
  void serve(Connection& connection, Bytes bytes);
  std::optional<Refusal> carry_out(Connection& connection, Bytes bytes);
  // Gives the client its replies of this turn; a refusal if it has left too many unread.
  std::optional<Refusal> send(Connection& connection);
  void send_to_woken();
  void refuse(Connection& connection, const Refusal& refusal);
  void close(ClientId client);
  void close_silent_newcomers();
  std::string& replies_to(ClientId client) override;

  // Somebody who connected and has to say VALIDATE before the loop's clock shows `deadline_ms`.
  struct Newcomer {
    ClientId client;
    std::int64_t deadline_ms;
  };

  net::Loop& loop_;
  std::int64_t greeting_ms_;
  std::deque<Newcomer> newcomers_;  // the earliest deadline first; some have greeted or gone since
  net::Timer next_deadline_;
  std::unique_ptr<net::Listener> listener_;
  std::unique_ptr<Keyspace> keyspace_ = std::make_unique<Keyspace>();
  std::unordered_map<ClientId, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> woken_;  // others that have replies by the commands being carried out
  Connection* serving_ = nullptr;   // the client whose commands are being carried out
  ClientId last_client_ = 0;
  Stats stats_;
  std::bitset<kRefusalKinds> told_;  // what the user has been told once already
};

}  // namespace elastic::store
