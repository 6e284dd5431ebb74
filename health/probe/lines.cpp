#include "health/probe/lines.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "src/base/text.h"

namespace elastic::health {
namespace {

constexpr std::size_t kLineBytes = 4096;

}  // namespace

bool Lines::wait(short events, const Deadline& deadline) {
  pollfd polled = {socket_, events, 0};
  for (;;) {
    if (poll(&polled, 1, deadline.left_ms()) > 0) return true;
    if (!deadline.has_passed()) continue;
    why_ = "it did not answer within " + deadline.span();
    return false;
  }
}

bool Lines::write(const std::string& line, const Deadline& deadline) {
  const std::string whole = line.substr(0, kLineBytes - 1) + "\n";
  for (std::string_view left = whole; !left.empty();) {
    if (!wait(POLLOUT, deadline)) return false;
    const ssize_t sent = send(socket_, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      why_ = connection_failure(errno);
      return false;
    }
  }
  return true;
}

std::optional<std::string> Lines::read(const Deadline& deadline) {
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > kLineBytes) {
      why_ = "it says too much";
      return {};
    }
    if (!wait(POLLIN, deadline)) return {};
    char bytes[512];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) unread_.append(bytes, static_cast<std::size_t>(got));
    if (got == 0) why_ = "it closed the connection";
    if (got < 0 && errno != EAGAIN && errno != EINTR) why_ = connection_failure(errno);
    if (!why_.empty()) return {};
  }
}

}  // namespace elastic::health
