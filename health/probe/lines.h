#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "health/probe/attempt.h"

namespace elastic::health {

// Reads and writes lines over a stream socket, blocking or not: between a probe and the process that started it, and
// between two probes.
class Lines {
 public:
  // `most_bytes`: reading fails on a longer line, and a longer line is cut when it is written.
  Lines(int socket, std::size_t most_bytes) : socket_(socket), most_bytes_(most_bytes) {}

  // A line is without its line end. They return false, or nothing, when the connection has failed or ended, or the
  // deadline, if there is one, has passed; why() then has the reason.
  bool write(const std::string& line, const Deadline* deadline = nullptr);
  std::optional<std::string> read(const Deadline* deadline = nullptr);
  // Receives what has come, without blocking. Returns whether read() will not block: a line is there, or none can come.
  bool has_news();
  int socket() const { return socket_; }
  const std::string& why() const { return why_; }  // a clause
  // Whether the reason is that the other end has closed the connection.
  bool is_closed() const { return is_closed_; }

 private:
  bool may_go_on(int error_number, short events, const Deadline* deadline);

  int socket_;
  std::size_t most_bytes_;
  std::string unread_ = {};
  std::string why_ = {};
  bool is_closed_ = false;
};

}  // namespace elastic::health
