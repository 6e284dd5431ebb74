#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::net {

// Streams to which the last word has been written: each is kept until its peer has closed too, at most a second, or as
// long as its peer gets on with taking what was written, at most `most_ms`. A connection that is closed at once, with
// something of the peer's unread, loses what was on its way there.
class LingeringConnections {
 public:
  explicit LingeringConnections(Loop& loop, std::int64_t most_ms = 0) : timer_(loop), loop_(loop), most_ms_(most_ms) {}

  void part(std::unique_ptr<Stream> stream);
  bool empty() const { return streams_.empty(); }
  std::size_t size() const { return streams_.size(); }
  // Called each time that the last of them has gone.
  void on_empty(std::function<void()> call) { on_empty_ = std::move(call); }

 private:
  struct Parting {
    std::unique_ptr<Stream> stream;
    std::int64_t until_ms = 0;
    std::int64_t at_most_until_ms = 0;
    std::size_t untaken = 0;  // when it was looked at last
  };
  void keep(Parting parting);
  void gone(std::uint64_t id);
  void close_late();

  net::Timer timer_;
  Loop& loop_;
  std::int64_t most_ms_;
  std::map<std::uint64_t, Parting> streams_;  // whose time is up first stands first
  std::uint64_t next_id_ = 0;
  std::function<void()> on_empty_;
};

}  // namespace elastic::net
