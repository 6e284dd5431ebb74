#include "src/process/hand_over.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace elastic::process {
namespace {

// A message that carries one descriptor; it must have at least one byte.
struct DescriptorMessage {
  char byte = 0;
  iovec part{&byte, sizeof byte};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};

  DescriptorMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

}  // namespace

Result<HandOver> HandOver::make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno("cannot make a socket to hand a worker its log files", errno);
  }
  return HandOver(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Status HandOver::put(int descriptor) const {
  DescriptorMessage parcel;
  cmsghdr* attached = CMSG_FIRSTHDR(&parcel.header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(attached), &descriptor, sizeof descriptor);
  if (sendmsg(in_.get(), &parcel.header, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) return {};
  return fail_errno("cannot hand a worker its log file", errno);
}

int take_descriptor(int out, int target) {
  close(target);  // the kernel gives the next descriptor the lowest free number
  DescriptorMessage parcel;
  if (recvmsg(out, &parcel.header, MSG_DONTWAIT) < 0) return errno;
  const cmsghdr* attached = CMSG_FIRSTHDR(&parcel.header);
  if (attached == nullptr || attached->cmsg_type != SCM_RIGHTS) return EBADF;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(attached), sizeof descriptor);
  return descriptor == target ? 0 : EBADF;
}

}  // namespace elastic::process
