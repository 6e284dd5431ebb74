#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rendezvous/store/requests.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::store {

// Bounds of a Client.
struct ClientBounds {
  std::int64_t connect_ms = 60'000;
  std::int64_t answer_ms = 60'000;              // for the reply to a request; then the connection ends
  std::size_t unsent_bytes = 64 * 1024 * 1024;  // of requests that the server does not read
};

// A client of a TCPStore server, PyTorch's or elastic-run's, on the loop. Requests are sent one after the other without
// waiting for replies.
//
// A callback is called once, in a later turn of the loop: with the reply, or with an error that names address, port and
// reason. An error ends the connection and all its requests, except for a request that is too large. Destroying the
// client, also from within a callback, calls no callback.
class Client {
 public:
  using Done = std::function<void(Result<std::string>)>;

  // Connects to a numeric address and sends VALIDATE. Requests may be made at once.
  Client(net::Loop& loop, const std::string& address, std::uint16_t port, const ClientBounds& bounds = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void get(std::string_view key, Done done);  // the empty value if the key is missing
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done done);  // gets the value afterwards; docs/store-protocol.md

  // This host's numeric address on the connection; empty while there is none.
  std::string local_address() const { return stream_ ? stream_->local_address() : std::string(); }
  // Why the connection has ended; nothing while it is being made or open.
  const std::optional<Error>& ended() const { return ended_; }

 private:
  void ask(std::string request, std::size_t key_bytes, std::size_t value_bytes, Done done);
  // Nothing: the request may be sent.
  std::optional<Error> why_refused(std::size_t bytes, std::size_t key_bytes, std::size_t value_bytes) const;
  void connected(Result<std::unique_ptr<net::Stream>> stream);
  void deliver(Bytes bytes);
  void look_at_time();
  void start_timer();
  void end(Error error);
  void fail_later(Done done, Error error);
  void tell_failed();
  Error error(std::string reason) const { return {what_, std::move(reason), {}}; }

  net::Loop& loop_;
  ClientBounds bounds_;
  std::string what_;                           // "store at port 29500 of 127.0.0.1"
  std::unique_ptr<net::Connector> connector_;  // until there is a stream
  std::unique_ptr<net::Stream> stream_;
  std::string unsent_;      // requests that wait for the connection
  std::deque<Done> asked_;  // of requests without their reply yet
  ReplyReader reader_;
  std::int64_t heard_ms_ = 0;                  // when the last bytes came, or the first unanswered request was sent
  net::Timer timer_;                           // the reply is late
  net::Timer soon_;                            // for callbacks that must not be called at once
  std::deque<std::pair<Done, Error>> failed_;  // callbacks that get their error soon
  std::optional<Error> ended_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // false once this is destroyed
};

}  // namespace elastic::store
