#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tests/simulation/network.h"

namespace elastic::simulation {

// A connection that a coordinator's process opens itself: to a peer port, to the endpoint, or to what a file names.
class Visit : public ConnectionOwner {
 public:
  // `on_made` is called once at most, and tells whether the connection was made. `on_read` may be empty.
  Visit(std::function<void(ConnectionId, bool)> on_made, std::function<void(ConnectionId, ByteString)> on_read)
      : on_made_(std::move(on_made)), on_read_(std::move(on_read)) {}

  void connection_made(ConnectionId id) override { tell(id, true); }
  void connection_broken(ConnectionId id, const std::string&) override { tell(id, false); }
  void connection_read(ConnectionId id, ByteString bytes) override {
    if (on_read_) on_read_(id, std::move(bytes));
  }

 private:
  void tell(ConnectionId id, bool is_made) {
    if (const auto call = std::exchange(on_made_, {})) call(id, is_made);
  }

  std::function<void(ConnectionId, bool)> on_made_;
  std::function<void(ConnectionId, ByteString)> on_read_;
};

}  // namespace elastic::simulation
