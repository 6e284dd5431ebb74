#pragma once

#include <optional>
#include <string>

#include "health/probe/attempt.h"

namespace elastic::health {

// Short lines over a connection of two probes, under a deadline each.
class Lines {
 public:
  explicit Lines(int socket) : socket_(socket) {}

  // False, or nothing: why() says what has happened.
  bool write(const std::string& line, const Deadline& deadline);
  std::optional<std::string> read(const Deadline& deadline);
  const std::string& why() const { return why_; }

 private:
  bool wait(short events, const Deadline& deadline);

  int socket_;
  std::string unread_ = {};
  std::string why_ = {};
};

}  // namespace elastic::health
