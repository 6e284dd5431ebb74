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
  std::int64_t answer_ms = 60'000;              // to anything but a WAIT that may last; then the connection ends
  std::size_t unsent_bytes = 64 * 1024 * 1024;  // requests that the server does not take
};

// A client of a TCPStore server, PyTorch's or ours. All of it happens on its loop. Requests are sent one
// behind the other without waiting; but a reply bears no sign of its request and that to a wait comes when its
// time has come, so what is asked after a wait() is sent when that has ended.
//
// A callback is called once, in a later turn of the loop: with the reply, or with an error that names address,
// port and reason. An error ends the connection and with it all requests, but for a wait that took too long and
// a request that is too large to be sent. Ending the client, also from within a callback, calls none of them.
class Client {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;
  struct Popped {
    std::int64_t length_before;  // 0: there was nothing to take
    std::string value;
  };

  // Connects to a numeric address and says VALIDATE; requests may be made at once.
  Client(net::Loop& loop, const std::string& address, std::uint16_t port, const ClientBounds& bounds = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // These have no reply: what succeeds has been queued. Whether it was carried out is known when a later
  // request has been answered. Fails where the connection has ended or the server would refuse the size.
  Status set(std::string_view key, std::string_view value);
  Status append(std::string_view key, std::string_view value);
  Status multi_set(Pairs pairs);
  Status queue_push(std::string_view key, std::string_view value);

  void get(std::string_view key, Done<std::string> done);  // the empty value if the key is missing
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done<std::string> done);  // the value afterwards, as docs/store-protocol.md has it
  void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done);
  void check(Keys keys, Done<bool> done);                  // whether all are there
  void delete_key(std::string_view key, Done<bool> done);  // whether it was there
  void num_keys(Done<std::int64_t> done);
  void list_keys(Done<std::vector<std::string>> done);
  void multi_get(Keys keys, Done<std::vector<std::string>> done);
  void queue_pop(std::string_view key, Done<Popped> done);
  void queue_len(std::string_view key, Done<std::int64_t> done);
  void ping(Done<void> done);
  // Until all keys are there. After `timeout_ms`, counted from this call, it is cancelled as PyTorch's client
  // does it, and fails; unless the keys come just then. The connection goes on.
  void wait(Keys keys, std::int64_t timeout_ms, Done<void> done);

  // This host's address of the connection, numeric; empty while there is none.
  std::string local_address() const { return stream_ ? stream_->local_address() : std::string(); }
  // Why the connection has ended; nothing while it is made or stands.
  const std::optional<Error>& ended() const { return ended_; }

 private:
  // Told of an error, or of nothing when its reply is in reader_; false if that reply makes no sense, and
  // then its callback has not been called.
  using OnReply = std::function<bool(const Error*)>;
  struct Request {
    std::string bytes;                // until it is sent
    std::optional<Reply> reply = {};  // none: nothing comes
    OnReply on_reply = {};
    std::size_t texts = 1;  // of Reply::kTexts
    bool is_wait = false;
    std::int64_t deadline_ms = 0;  // of a wait, on the loop's clock
  };
  // What a server judges a request by.
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
  std::deque<Request> unsent_;    // connecting, or behind a wait
  std::size_t unsent_bytes_ = 0;  // in there
  std::deque<Request> sent_;      // and not yet answered; a wait is the last
  bool canceling_ = false;        // CANCEL_WAIT was sent for that wait
  ReplyReader reader_;
  std::int64_t heard_ms_ = 0;                     // when something came last, or was asked after all was answered
  net::Timer timer_;                              // the next time limit
  net::Timer soon_;                               // for calls that must not happen at once
  std::deque<std::pair<OnReply, Error>> failed_;  // to be told soon
  std::uint32_t nonce_ = 0;
  std::optional<Error> ended_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // false when this has gone
};

}  // namespace elastic::store
