#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol/codec.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/trace.h"

namespace elastic::simulation {

using ConnectionId = std::uint32_t;
// What a process listens at: an address and a port.
using ListenerId = std::uint32_t;
using protocol::Bytes;
using protocol::ByteString;

// The owner of one end of a connection. It gets no events of an end that was closed.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void connection_made(ConnectionId id) = 0;
  virtual void connection_read(ConnectionId id, ByteString bytes) = 0;
  virtual void connection_broken(ConnectionId id, const std::string& why) = 0;
};

enum class End : std::uint8_t { kClient, kServer };
inline End other(End end) { return end == End::kClient ? End::kServer : End::kClient; }

// Hosts, and TCP connections between clients and servers. A connection keeps the order of its bytes, may split
// them anywhere, and has a delay of its own in each direction; two connections are independent.
//   If a process ends and its host lives, its connections end after what was sent, and new ones to it are refused.
//   If a host is down or frozen, or a way is cut, bytes wait. The sender's connection breaks after the TCP user
//   timeout, if there is one; otherwise the bytes arrive some time after the way is open again, or are answered by a
//   reset if the other end is closed.
class Network {
 public:
  Network(Timeline& timeline, Trace& trace, Random random) : timeline_(timeline), trace_(trace), random_(random) {}

  // Sets the largest delay of one way, and the TCP user timeout (0: none).
  void set_speed(Ms delay_ms, Ms user_timeout_ms, bool steady);
  void add_delay(Ms more_ms) {
    burst_ms_ += more_ms;
    longest_burst_ms_ = std::max(longest_burst_ms_, burst_ms_);
  }
  // The longest delay of one way while nothing is held up.
  Ms longest_way_ms() const { return 2 * longest_delay_ms_ + 1 + longest_burst_ms_; }
  // Changes whenever the hosts that reach each other may have changed.
  std::uint64_t changes() const { return changes_; }
  int add_host();
  // Connections to it are refused until listen().
  ListenerId add_listener(int host, ConnectionOwner& owner) {
    listeners_.push_back({host, &owner});
    return static_cast<ListenerId>(listeners_.size() - 1);
  }
  int host_of(ListenerId id) const { return listeners_[id].host; }
  void listen(ListenerId id, bool listens) {
    listeners_[id].listens = listens;
    ++changes_;
  }

  ConnectionId connect(int host, ConnectionOwner& client, ListenerId to);
  void send(ConnectionId id, End from, ByteString bytes);
  // Ends the connection after what was sent. The owner gets no further event of it.
  void close(ConnectionId id, End end);
  // Closes the connections that a listener has accepted, at its end.
  void close_all_of(ListenerId id);
  // Resets both ends, as a firewall does: bytes that are under way are lost.
  void reset(ConnectionId id);

  void host_down(int host);
  void host_up(int host);
  void freeze(int host);
  void thaw(int host);
  void cut(int from, int to) {
    ++cuts_[{from, to}];
    ++changes_;
  }
  void heal(int from, int to);
  void heal_all();
  bool is_cut(int from, int to) const;
  // Packets go both ways, and both hosts are up and not frozen.
  bool reaches(int from, int to) const;
  bool is_up(int host) const { return hosts_[static_cast<std::size_t>(host)].up; }
  bool is_frozen(int host) const { return hosts_[static_cast<std::size_t>(host)].frozen > 0; }
  bool is_open(ConnectionId id, End end) const;
  std::size_t open_connections() const;

  std::uint64_t messages() const { return messages_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Chunk {
    ByteString bytes;
    Ms at_ms;
    bool is_end = false;
    bool is_reset = false;
  };
  // A queue that allocates nothing before something is sent.
  class Flight {
   public:
    bool empty() const { return gone_ == chunks_.size(); }
    Chunk& front() { return chunks_[gone_]; }
    void push_back(Chunk chunk) { chunks_.push_back(std::move(chunk)); }
    void pop_front() {
      if (++gone_ == chunks_.size()) clear();
    }
    void clear() {
      chunks_.clear();
      gone_ = 0;
    }
    auto begin() { return chunks_.begin() + static_cast<std::ptrdiff_t>(gone_); }
    auto end() { return chunks_.end(); }

   private:
    std::vector<Chunk> chunks_;
    std::size_t gone_ = 0;
  };
  struct Way {
    Flight flight;
    Ms delay_ms = 0;
    Ms last_ms = 0;
    bool waits = false;  // the first chunk is held up
    bool timing_out = false;
    bool is_local = false;  // both ends are on one host, so there is no delay
  };
  struct Listener {
    int host = 0;
    ConnectionOwner* owner = nullptr;
    bool listens = false;
  };
  struct Connection {
    int client_host = 0;
    ConnectionOwner* client = nullptr;
    ListenerId to = 0;
    bool open[2] = {false, false};
    bool made = false;      // the server has accepted it
    bool is_reset = false;  // bytes that are sent from now on are lost, though an end may not know of the reset yet
    bool client_knows = false;
    int attempts = 0;
    Way way[2];  // by the sending end
  };
  struct Host {
    bool up = true;
    int frozen = 0;
  };
  Connection& at(ConnectionId id) { return connections_[id]; }
  int host_of(const Connection& c, End end) const {
    return end == End::kClient ? c.client_host : listeners_[c.to].host;
  }
  ConnectionOwner& owner_of(const Connection& c, End end) const {
    return end == End::kClient ? *c.client : *listeners_[c.to].owner;
  }
  void knock(ConnectionId id);
  void push(ConnectionId id, End from, Chunk chunk);
  void arrive(ConnectionId id, End from);
  void take(ConnectionId id, End from, Chunk chunk, ByteString& merged);
  void hand_over(ConnectionId id, End to, ByteString& merged);
  void answer_by_reset(ConnectionId id, End to);
  void arm_timeout(ConnectionId id, End from);
  void let_go();
  Ms delay_of(const Way& way);
  void break_end(ConnectionId id, End end, const std::string& why);

  Timeline& timeline_;
  Trace& trace_;
  Random random_;
  Ms longest_delay_ms_ = 3;
  Ms user_timeout_ms_ = 0;
  bool steady_ = false;  // every way has the longest delay
  Ms burst_ms_ = 0;
  Ms longest_burst_ms_ = 0;
  std::uint64_t changes_ = 0;
  std::vector<Listener> listeners_{1};  // by id; 0 is none
  std::vector<Host> hosts_;
  std::deque<Connection> connections_{1};  // by id; 0 is none
  std::map<std::pair<int, int>, int> cuts_;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace elastic::simulation
