#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/net/loop.h"

namespace elastic::net {

// One TCP connection. Destroying it, also from within its own callbacks, closes it.
class Stream {
 public:
  struct Handlers {
    // Bytes as they arrive; valid only during the call.
    std::function<void(std::span<const std::uint8_t>)> on_data;
    // The peer has closed or the connection failed; nothing follows. Called at most once.
    std::function<void()> on_end;
    // The kernel has taken all bytes that it did not take at once. May be empty.
    std::function<void()> on_drained = nullptr;
  };

  struct State;
  explicit Stream(State* state);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Begins to read; no handler is called before. A second call replaces the handlers. No handler is called for a
  // connection that broke before.
  void start(Handlers handlers);
  // Sends at once as much as the kernel takes and keeps the rest until it takes more. If all was sent at
  // once, `bytes` keeps its memory, so that the caller can clear() and reuse it. SIGPIPE must be ignored.
  void write(std::string&& bytes);
  // Sends these pieces, INT_MAX bytes at most, without a copy, behind what was written before. They must stay valid
  // until `owner` is released, which is when on_drained is called, in a later turn of the loop, or when the connection
  // ends.
  void write(std::span<const std::string_view> pieces, std::shared_ptr<const void> owner);
  // Reads nothing more until resume(). Meanwhile only a failed write shows that the peer has closed; on_end is called
  // for it.
  void pause();
  void resume();
  // Bytes given to write() that the kernel has not taken yet.
  std::size_t unsent_bytes() const;
  // The same, plus the bytes that the peer's kernel has not acknowledged yet. It falls as the peer reads.
  std::size_t untaken_bytes() const;
  // The memory that unsent bytes take: a write that was sent in part is kept whole, and each write() has an overhead.
  std::size_t held_bytes() const;
  // "127.0.0.1:40312", "[::1]:40312"; "unknown" if the peer is gone.
  std::string peer() const;
  // Both ends' addresses without their ports, IPv4 ones never in mapped form; empty if the peer is gone.
  std::string peer_address() const;
  std::string local_address() const;
  // Ends the sending direction behind all that was written. Reading goes on.
  void finish();

 private:
  State* state_;
};

// An outgoing TCP connection that is being made. Destroying the Connector, also from within its callback, cancels it.
class Connector {
 public:
  using OnDone = std::function<void(Result<std::unique_ptr<Stream>>)>;

  // Connects to a numeric address. `on_done` is called once, in a later turn of the loop: with the stream,
  // or with an error whose `what` names address and port and whose `reason` is the system's (connection
  // refused, ...), or that the address is not numeric, or that `timeout_ms` are over.
  Connector(Loop& loop, const std::string& address, std::uint16_t port, std::int64_t timeout_ms, OnDone on_done);
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct Attempt;
  void end(std::string reason);  // an empty reason: it is connected

  std::string what_;
  OnDone on_done_;
  Timer timer_;
  std::unique_ptr<Stream> stream_;  // until on_done_ takes it
  Attempt* attempt_ = nullptr;      // as long as libuv uses it
};

// A listening TCP socket.
class Listener {
 public:
  using OnAccept = std::function<void(std::unique_ptr<Stream>)>;

  // Listens on a numeric address ("127.0.0.1", "::1"), or on all addresses of both families if it
  // is empty; port 0 takes a free one. SO_REUSEADDR is set. Fails with the system's reason (address
  // in use, ...); the error's `what` names address and port.
  static Result<std::unique_ptr<Listener>> open(Loop& loop, const std::string& address, std::uint16_t port,
                                                OnAccept on_accept);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const { return port_; }

  // Accepts and closes at once all connections in the accept queue. Returns their number.
  std::size_t refuse_queued();

 private:
  struct State;
  Listener(State* state, std::uint16_t port) : state_(state), port_(port) {}
  State* state_;
  std::uint16_t port_;
};

}  // namespace elastic::net
