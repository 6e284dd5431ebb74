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
#include "rendezvous/store/limits.h"
#include "rendezvous/store/store_view.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::store {

// The bounds of a server. It closes connections that exceed them, unless a line says otherwise.
struct ServerBounds {
  std::int64_t greeting_ms = limits::kStoreGreetingMs;        // how long a connection may take to send VALIDATE
  std::size_t unread_bytes = limits::kStoreUnreadReplyBytes;  // of one client's replies; beyond it its requests wait
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
    std::uint64_t accepted = 0;                    // connections since open(), as are the following counts
    std::uint64_t refused = 0;                     // connections that were closed for what they sent or did not read
    std::uint64_t commands = 0;                    // the sum of `operations`
    std::array<std::uint64_t, kOps> operations{};  // by Op
  };

  // Listens on a numeric address, or on all addresses if it is empty; port 0 takes a free one.
  // Serves from the next turn of the loop on. Fails as net::Listener::open does.
  static Result<std::unique_ptr<Server>> open(net::Loop& loop, const std::string& address, std::uint16_t port,
                                              const ServerBounds& bounds = {});
  // Listens at the same port of another numeric address, too. Fails as open() does.
  Status listen_also(const std::string& address);
  // A server without a port: its connections come by adopt().
  static std::unique_ptr<Server> without_port(net::Loop& loop, const ServerBounds& bounds = {});
  // Serves a connection that the caller has accepted, and of which it has read these bytes.
  void adopt(std::unique_ptr<net::Stream> stream, Bytes bytes);
  // Closes the port and every connection.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The port; 0 if it has none.
  std::uint16_t port() const { return listeners_.empty() ? 0 : listeners_.front()->port(); }

  // Sets the addresses that may connect from now on; until then all may.
  void admit(Admission admission) { admission_ = std::move(admission); }

  // Starts a new round on the same port: closes every connection, also those in the accept queue, and replaces the
  // keyspace by an empty one. Clients that connect later see new keys only; so it is to be called when the last process
  // of the old round has ended.
  void reset();

  Stats stats() const;

  // Sets /exception_dump, unless it is there, as PyTorch's NCCL engine does when a collective has timed out: all ranks
  // that look for it dump their flight recorders, and end some minutes later. It names rank -1, for none has timed out.
  void ask_for_dumps();

  // The clients that wait, with their keys, and the ranks that have come to the init of a group in which a client
  // waits. It takes longer the more clients wait, not the more keys there are.
  StoreView view(int world_size) const;

 private:
  struct Connection;

  Server(net::Loop& loop, const ServerBounds& bounds);
  Status listen(const std::string& address, std::uint16_t port);
  // Returns null if the connection was not admitted; then it is closed.
  Connection* accept(std::unique_ptr<net::Stream> stream);
  void serve(Connection& connection, Bytes bytes);
  std::optional<Refusal> carry_out(Connection& connection, Bytes bytes);
  // Hands the first of the client's replies to the kernel, unless that has not sent the earlier ones yet.
  void send(Connection& connection);
  std::size_t slice_bytes() const;
  void send_to_woken();
  bool is_behind(const Connection& connection) const;
  // Stops reading from the client for now.
  static void pause(Connection& connection);
  // The kernel has sent what it was given: hands it more replies, and goes on with the client's requests.
  void go_on(Connection& connection);
  // Updates what a client has in transit. If all clients together exceed the bound, the client that has the most is
  // disconnected, which may be this one.
  void count_transit(Connection& connection);
  static std::size_t bytes_under_way(const Connection& connection);
  void recount_transit(Connection& connection);
  std::size_t transit_bytes() const { return transit_bytes_ + keyspace_->loose()->count; }
  // Returns how many bytes that client had.
  std::size_t end_who_has_most_under_way();
  // Closes the connection when the client has read the replies to its earlier requests.
  void refuse_behind_replies(Connection& connection, const Refusal& refusal);
  void refuse(Connection& connection, const Refusal& refusal);
  // Logs each kind of refusal once.
  void tell_refused(const std::string& peer, const Refusal& refusal);
  void close(ClientId client);
  std::string peer_of(ClientId client) const;  // empty if it is no client any more
  std::size_t held_bytes() const;
  // Arranges for free memory to be returned to the system a while after much of it has become free.
  void watch_memory();
  void give_memory_back();
  static constexpr ClientId kNobody = 0;  // ourselves
  void close_silent_newcomers();
  Replies& replies_to(ClientId client) override;

  // A connection that has to send VALIDATE before `deadline_ms` by the loop's clock.
  struct Newcomer {
    ClientId client;
    std::int64_t deadline_ms;
  };

  net::Loop& loop_;
  Admission admission_;
  ServerBounds bounds_;
  std::deque<Newcomer> newcomers_;  // the earliest deadline first; some have sent VALIDATE or have ended since
  net::Timer next_deadline_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;  // at one port of several addresses
  std::unique_ptr<Keyspace> keyspace_;
  std::unordered_map<ClientId, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> woken_;  // other clients that got replies by the commands being carried out
  Connection* serving_ = nullptr;   // the client whose commands are being carried out
  ClientId last_client_ = kNobody;
  Replies to_nobody_;        // to what this process sets itself, which has none
  std::size_t sending_ = 0;  // how many connections have replies that no slice contains yet
  // The sum of all connections' transit_bytes. Each is as old as its connection's last request, and replies may have
  // been read since: before the bound is applied a sum that exceeds it is computed again.
  std::size_t transit_bytes_ = 0;
  std::size_t most_held_bytes_ = 0;  // the maximum since free memory was returned
  net::Timer give_back_;
  bool will_give_back_ = false;
  Stats stats_;
  std::bitset<kRefusalKinds> told_;  // the kinds of refusals that were logged
};

}  // namespace elastic::store
