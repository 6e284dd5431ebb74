#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/store/requests.h"
#include "src/base/result.h"
#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::store {

// Bounds of a Client.
struct ClientBounds {
  std::int64_t connect_ms = 60'000;
  std::int64_t answer_ms = 60'000;              // for the reply to a request other than WAIT; then the connection ends
  std::size_t unsent_bytes = 64 * 1024 * 1024;  // of requests that the server does not read
};

// A client of a TCPStore server, PyTorch's or elastic-run's, on the loop. Requests are sent one after the other without
// waiting for replies. Replies do not name their request, and that to a wait may come late: requests after a wait() are
// sent when it has ended.
//
// A callback is called once, in a later turn of the loop: with the reply, or with an error that names address, port and
// reason. An error ends the connection and all its requests, except for a wait that timed out and a request that is too
// large. Destroying the client, also from within a callback, calls no callback.
class Client {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;
  struct Popped {
    std::int64_t length_before;  // 0: the queue was empty
    std::string value;
  };

  // Connects to a numeric address and sends VALIDATE. Requests may be made at once.
  Client(net::Loop& loop, const std::string& address, std::uint16_t port, const ClientBounds& bounds = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // These requests have no reply: success means that the request was queued. It was carried out when a later request
  // has been answered. They fail if the connection has ended or the server would refuse the size.
  Status set(std::string_view key, std::string_view value);
  Status append(std::string_view key, std::string_view value);
  Status multi_set(Pairs pairs);
  Status queue_push(std::string_view key, std::string_view value);

  void get(std::string_view key, Done<std::string> done);  // the empty value if the key is missing
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done<std::string> done);  // gets the value afterwards; docs/store-protocol.md
  void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done);
  void check(Keys keys, Done<bool> done);                  // gets whether all keys exist
  void delete_key(std::string_view key, Done<bool> done);  // gets whether the key existed
  void num_keys(Done<std::int64_t> done);
  void list_keys(Done<std::vector<std::string>> done);
  void multi_get(Keys keys, Done<std::vector<std::string>> done);
  void queue_pop(std::string_view key, Done<Popped> done);
  void queue_len(std::string_view key, Done<std::int64_t> done);
  void ping(Done<void> done);
  // Waits until all keys exist. `timeout_ms` after this call it is cancelled as PyTorch's client does, and fails,
  // unless the keys are set just then. The connection stays open.
  void wait(Keys keys, std::int64_t timeout_ms, Done<void> done);

  // This host's numeric address on the connection; empty while there is none.
  std::string local_address() const { return stream_ ? stream_->local_address() : std::string(); }
  // Why the connection has ended; nothing while it is being made or open.
  const std::optional<Error>& ended() const { return ended_; }

 private:
  // Gets an error, or null when the reply is in reader_. Returns false if the reply makes no sense; then the callback
  // has not been called.
  using OnReply = std::function<bool(const Error*)>;
  struct Request {
    std::string bytes;                // until it is sent
    std::optional<Reply> reply = {};  // nothing: the request has no reply
    OnReply on_reply = {};
    std::size_t texts = 1;  // of Reply::kTexts
    bool is_wait = false;
    std::int64_t deadline_ms = 0;  // of a wait, on the loop's clock
  };
  // The sizes that a server checks.
  struct Size {
    std::size_t keys = 1;
    std::size_t longest_key = 0;
    std::size_t longest_value = 0;
  };
  static Size size_of(Keys keys);

  Status ask_nothing(std::string bytes, const Size& size);
  void ask(Request request, const Size& size);
  Status admit(std::size_t bytes, const Size& size) const;
  void connected(Result<std::unique_ptr<net::Stream>> stream);
  void send_what_may_be_sent();
  void deliver(Bytes bytes);
  void look_at_time();
  void start_timer();
  void end(Error error);
  void fail_later(OnReply on_reply, Error error);
  Error error(std::string reason) const { return {what_, std::move(reason), {}}; }

  net::Loop& loop_;
  ClientBounds bounds_;
  std::string what_;                           // "store at port 29500 of 127.0.0.1"
  std::unique_ptr<net::Connector> connector_;  // until there is a stream
  std::unique_ptr<net::Stream> stream_;
  std::deque<Request> unsent_;    // requests that wait for the connection, or for a wait to end
  std::size_t unsent_bytes_ = 0;  // the bytes in unsent_
  std::deque<Request> sent_;      // requests without their reply yet; a wait is the last
  bool canceling_ = false;        // CANCEL_WAIT was sent for that wait
  ReplyReader reader_;
  std::int64_t heard_ms_ = 0;                     // when the last bytes came, or the first unanswered request was sent
  net::Timer timer_;                              // the next time limit
  net::Timer soon_;                               // for callbacks that must not be called at once
  std::deque<std::pair<OnReply, Error>> failed_;  // callbacks that get their error soon
  std::uint32_t nonce_ = 0;
  std::optional<Error> ended_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // false once this is destroyed
};

}  // namespace elastic::store
