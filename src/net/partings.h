#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "src/net/loop.h"
#include "src/net/tcp.h"

namespace elastic::net {

// Streams to which the last word has been written: each is kept until its peer has closed too, at most a while.
// A connection that is closed at once, with something of the peer's unread, loses what was on its way there.
class Partings {
 public:
  explicit Partings(Loop& loop) : timer_(loop), loop_(loop) {}

  void part(std::unique_ptr<Stream> stream);
  bool empty() const { return streams_.empty(); }
  std::size_t size() const { return streams_.size(); }
  // Called each time that the last of them has gone.
  void on_empty(std::function<void()> call) { on_empty_ = std::move(call); }

 private:
  struct Parting {
    std::unique_ptr<Stream> stream;
    std::int64_t until_ms = 0;
  };
  void gone(std::uint64_t id);
  void close_late();

  net::Timer timer_;
  Loop& loop_;
  std::map<std::uint64_t, Parting> streams_;  // the earliest first
  std::uint64_t next_id_ = 0;
  std::function<void()> on_empty_;
};

}  // namespace elastic::net
