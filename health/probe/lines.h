#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "health/probe/attempt.h"

namespace elastic::health {

// Lines over a stream socket, whether it blocks or not: to who has started the probe, and between two probes.
class Lines {
 public:
  // A line that comes has at most `most_bytes`; of one that is written more are cut off.
  Lines(int socket, std::size_t most_bytes) : socket_(socket), most_bytes_(most_bytes) {}

  // Without its end. False, or nothing, once there is no more to be had, or by the deadline, if there is one: why()
  // says what has happened.
  bool write(const std::string& line, const Deadline* deadline = nullptr);
  std::optional<std::string> read(const Deadline* deadline = nullptr);
  // Takes what has come, without waiting: whether read() will not wait either, for there is a line, or none will come.
  bool has_news();
  int socket() const { return socket_; }
  const std::string& why() const { return why_; }  // as a clause
  // Whether it is that the other end has gone.
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
