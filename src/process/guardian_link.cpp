#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/process/guardian.h"

namespace elastic::process {

GuardianLink::GuardianLink(net::Loop& loop, GuardianChannel channel, Handlers handlers)
    : handlers_(std::move(handlers)), channel_(std::move(channel)) {
  watch_ = std::make_unique<net::ReadWatch>(loop, channel_.socket.get(), [this] { receive(); });
}

void GuardianLink::send(GuardianMessage message) const {
  // If the guardian has died, receive() sees it.
  (void)!::send(channel_.socket.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void GuardianLink::set_lease(std::optional<std::int64_t> until_ms) {
  const std::optional<std::int64_t> before_ms = channel_.board.lease();
  channel_.board.set_lease(until_ms);
  // The guardian has set its timer by the lease before; when the timer fires, it reads the new lease. If the packet is
  // lost because the guardian does not read, others wait in the socket, and it reads the lease after those.
  const bool ends_sooner = until_ms && (!before_ms || *until_ms < *before_ms);
  if (ends_sooner) send({GuardianMessage::Kind::kLease, 0});
}

void GuardianLink::receive() {
  for (;;) {
    GuardianMessage message;
    const ssize_t count = recv(channel_.socket.get(), &message, sizeof message, MSG_DONTWAIT);
    if (count == static_cast<ssize_t>(sizeof message)) {
      if (message.kind != GuardianMessage::Kind::kSignal) continue;
      send({GuardianMessage::Kind::kHeard, message.value});
      handlers_.on_signal(message.value);
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    watch_.reset();
    handlers_.on_lost();
    return;
  }
}

void introduce_to_guardian(int channel, pid_t pid) {
  GuardianMessage message{GuardianMessage::Kind::kWorker, pid};
  iovec part{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd >= 0) {  // before Linux 5.3 there is none, and the pid alone is sent
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* attached = CMSG_FIRSTHDR(&header);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(attached), &pidfd, sizeof pidfd);
  }
  (void)!sendmsg(channel, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (pidfd >= 0) close(pidfd);
}

}  // namespace elastic::process
