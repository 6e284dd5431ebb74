#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::net {

// Streams to which the last bytes have been written. Each is kept until its peer has closed, too, for at most a second,
// or as long as its peer goes on taking what was written, for at most `most_ms`. If a connection were closed at once
// while bytes of the peer are unread, the bytes on their way to the peer would be lost.
class LingeringConnections {
 public:
  explicit LingeringConnections(Loop& loop, std::int64_t most_ms = 0) : timer_(loop), loop_(loop), most_ms_(most_ms) {}

  void part(std::unique_ptr<Stream> stream);
  bool empty() const { return streams_.empty(); }
  std::size_t size() const { return streams_.size(); }
  // `call` is called each time when the last stream has gone.
  void on_empty(std::function<void()> call) { on_empty_ = std::move(call); }

 private:
  struct Parting {
    std::unique_ptr<Stream> stream;
    std::int64_t until_ms = 0;
    std::int64_t at_most_until_ms = 0;
    std::size_t untaken = 0;  // at the last check
  };
  void keep(Parting parting);
  void gone(std::uint64_t id);
  void close_late();

  net::Timer timer_;
  Loop& loop_;
  std::int64_t most_ms_;
  std::map<std::uint64_t, Parting> streams_;  // in the order of until_ms
  std::uint64_t next_id_ = 0;
  std::function<void()> on_empty_;
};

}  // namespace elastic::net
