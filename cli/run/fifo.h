#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/unique_fd.h"
#include "src/net/loop.h"

namespace elastic::run {

// A FIFO by which workers say something. It is open for reading and writing here, so that a writer neither waits until
// it may open it nor is told that nobody reads. A writer of very much at once is read again after a while, so that it
// does not keep the loop busy.
class Fifo {
 public:
  using OnBytes = std::function<void(std::string_view bytes)>;
  Fifo(net::Loop& loop, OnBytes on_bytes);

  // Makes it, once, with mode 0600. Fails with the system's reason, and then there is none. `bytes`: how much it is to
  // hold, where the system allows that; 0: as much as it does by itself.
  Status make(const std::string& path, int bytes = 0);
  bool is_open() const { return static_cast<bool>(descriptor_); }
  // Whether this path leads to it.
  bool is_at(const std::string& path) const;
  // Hands over what is in it now.
  void read_all();
  // Passes over what is in it now.
  void empty();

 private:
  void watch();
  void readable();

  net::Loop& loop_;
  OnBytes on_bytes_;
  UniqueFd descriptor_;
  std::optional<net::ReadWatch> watch_;  // not set while it is not read
  net::Timer pause_;
};

}  // namespace elastic::run
