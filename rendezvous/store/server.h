#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rendezvous/store/admission.h"
#include "rendezvous/store/keyspace.h"
#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::store {

// What a server bears before it closes connections.
struct ServerBounds {
  std::int64_t greeting_ms = limits::kStoreGreetingMs;        // from a connection to its VALIDATE
  std::size_t unread_bytes = limits::kStoreUnreadReplyBytes;  // of one client's replies; beyond it waits
  std::size_t store_bytes = limits::kStoreBytes;              // of the keyspace
  std::size_t transit_bytes = limits::kStoreTransitBytes;     // of all unfinished requests, unread replies
};

// A worker store: one listening port, its connections and the keyspace they share.
class Server final : private Outbox {
 public:
  struct Stats {
    std::size_t connections = 0;                   // now
    std::size_t keys = 0;                          // now
    std::size_t store_bytes = 0;                   // of the keyspace, now
    std::size_t transit_bytes = 0;                 // unfinished requests and unread replies, now
    std::uint64_t accepted = 0;                    // the rest since open()
    std::uint64_t refused = 0;                     // closed for what they sent or did not read
    std::uint64_t commands = 0;                    // the sum of `operations`
    std::array<std::uint64_t, kOps> operations{};  // by Op
  };

  // Listens on a numeric address, or on all addresses if it is empty; port 0 takes a free one.
  // Serves from the next turn of the loop on. Fails as net::Listener::open does.
  static Result<std::unique_ptr<Server>> open(net::Loop& loop, const std::string& address, std::uint16_t port,
                                              const ServerBounds& bounds = {});
  // One without a port: somebody else accepts its connections.
  static std::unique_ptr<Server> without_port(net::Loop& loop, const ServerBounds& bounds = {});
  // Serves a connection that somebody else has accepted, and of which these bytes have been read.
  void adopt(std::unique_ptr<net::Stream> stream, Bytes bytes);
  // Closes the port and every connection.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // 0 without one.
  std::uint16_t port() const { return listener_ ? listener_->port() : 0; }

  // Who may connect from now on; everybody until it is called.
  void admit(Admission admission) { admission_ = std::move(admission); }

  // Starts a new round on the same port: closes every connection, also those that wait in the
  // accept queue, and replaces the keyspace by an empty one. Whoever connects after it sees only
  // new keys; so call it when the last process of the old round has gone.
  void reset();

  Stats stats() const;

 private:
  struct Connection;

  Server(net::Loop& loop, const ServerBounds& bounds);
  // Null: it was not admitted, and is closed.
  Connection* accept(std::unique_ptr<net::Stream> stream);
  void serve(Connection& connection, Bytes bytes);
  std::optional<Refusal> carry_out(Connection& connection, Bytes bytes);
  // Gives the kernel the first of the replies to the client, unless it has not taken earlier ones yet.
  void send(Connection& connection);
  std::size_t slice_bytes() const;
  void send_to_woken();
  bool is_behind(const Connection& connection) const;
  // Reads nothing more of the client for now.
  static void pause(Connection& connection);
  // The kernel has taken what it was given: gives it more, and goes on with the client's requests.
  void go_on(Connection& connection);
  // Counts anew what a client has under way; where all of it is beyond its bound, whoever has
  // the most is disconnected, which may be this one.
  void count_transit(Connection& connection);
  static std::size_t bytes_under_way(const Connection& connection);
  void recount_transit(Connection& connection);
  std::size_t transit_bytes() const { return transit_bytes_ + keyspace_->loose()->count; }
  // Returns how much that one had.
  std::size_t end_who_has_most_under_way();
  // Closes the connection when the client has taken the replies to what came before.
  void refuse_behind_replies(Connection& connection, const Refusal& refusal);
  void refuse(Connection& connection, const Refusal& refusal);
  // Each kind is worth one line of the log.
  void tell_refused(const std::string& peer, const Refusal& refusal);
  void close(ClientId client);
  std::size_t held_bytes() const;
  // Has free memory given back to the system a while after much of it has become free.
  void watch_memory();
  void give_memory_back();
  void close_silent_newcomers();
  Replies& replies_to(ClientId client) override;

  // Somebody who connected and has to say VALIDATE before the loop's clock shows `deadline_ms`.
  struct Newcomer {
    ClientId client;
    std::int64_t deadline_ms;
  };

  net::Loop& loop_;
  Admission admission_;
  ServerBounds bounds_;
  std::deque<Newcomer> newcomers_;  // the earliest deadline first; some have greeted or gone since
  net::Timer next_deadline_;
  std::unique_ptr<net::Listener> listener_;
  std::unique_ptr<Keyspace> keyspace_;
  std::unordered_map<ClientId, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> woken_;  // others that have replies by the commands being carried out
  Connection* serving_ = nullptr;   // the client whose commands are being carried out
  ClientId last_client_ = 0;
  std::size_t sending_ = 0;  // connections that have replies which no slice has yet
  // The sum of all connections' transit_bytes. Each is as old as its connection's last request, and
  // replies may have been read since: a sum that is too large is counted anew.
  std::size_t transit_bytes_ = 0;
  std::size_t most_held_bytes_ = 0;  // since free memory was given back
  net::Timer give_back_;
  bool will_give_back_ = false;
  Stats stats_;
  std::bitset<kRefusalKinds> told_;  // what the user has been told once already
};

}  // namespace elastic::store
