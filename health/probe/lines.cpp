#include "health/probe/lines.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace elastic::health {

// Called after a system call has failed. Returns whether to try again, and waits before until the socket is ready.
bool Lines::may_go_on(int error_number, short events, const Deadline* deadline) {
  if (error_number == EINTR) return true;
  if (error_number != EAGAIN) {
    is_closed_ = error_number == EPIPE || error_number == ECONNRESET;
    why_ = connection_failure(error_number);
    return false;
  }
  pollfd polled = {socket_, events, 0};
  for (;;) {
    if (poll(&polled, 1, deadline == nullptr ? -1 : deadline->left_ms()) > 0) return true;
    if (deadline == nullptr || !deadline->has_passed()) continue;
    why_ = "it did not answer within " + deadline->span();
    return false;
  }
}

bool Lines::write(const std::string& line, const Deadline* deadline) {
  const std::string whole = line.substr(0, most_bytes_) + "\n";
  for (std::string_view left = whole; !left.empty();) {
    const ssize_t sent = send(socket_, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && !may_go_on(errno, POLLOUT, deadline)) return false;
  }
  return true;
}

bool Lines::has_news() {
  for (;;) {
    if (unread_.find('\n') != std::string::npos || unread_.size() > most_bytes_) return true;
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0)
      unread_.append(bytes, static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      return got == 0 || errno != EAGAIN;
  }
}

std::optional<std::string> Lines::read(const Deadline* deadline) {
  for (;;) {
    const std::size_t end = unread_.find('\n');
    if (std::min(end, unread_.size()) > most_bytes_) {
      why_ = "it sent a line that is too long";
      return {};
    }
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) unread_.append(bytes, static_cast<std::size_t>(got));
    if (got == 0) {
      is_closed_ = true;
      why_ = "it closed the connection";
      return {};
    }
    if (got < 0 && !may_go_on(errno, POLLIN, deadline)) return {};
  }
}

}  // namespace elastic::health
