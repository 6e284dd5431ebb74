#include "src/process/worker_barrier.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "src/base/text.h"

namespace elastic::process {

Result<std::unique_ptr<WorkerBarrier>> WorkerBarrier::make(net::Loop& loop, int workers) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno("cannot make a socket at which workers wait for each other", errno);
  }
  return std::unique_ptr<WorkerBarrier>(new WorkerBarrier(loop, {UniqueFd(ends[0]), UniqueFd(ends[1])}, workers));
}

WorkerBarrier::WorkerBarrier(net::Loop& loop, Ends ends, int workers)
    : workers_(workers),
      ours_(std::move(ends.ours)),
      theirs_(std::move(ends.theirs)),
      watch_(std::make_unique<net::ReadWatch>(loop, ours_.get(), [this] { hear(); })) {}

void WorkerBarrier::done(int local_rank) {
  if (local_rank < 0 || local_rank >= workers_) return;
  done_.insert(local_rank);
  if (std::cmp_equal(done_.size(), workers_)) open();
}

void WorkerBarrier::open() {
  watch_.reset();
  ours_ = UniqueFd();
  theirs_ = UniqueFd();
}

// Each worker sends one message. A message that is not a number was written there by a script, by mistake.
void WorkerBarrier::hear() {
  std::array<char, 16> text{};
  while (ours_) {
    const ssize_t bytes = recv(ours_.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (bytes < 0) return;
    const auto local_rank = parse_int(std::string_view(text.data(), static_cast<std::size_t>(bytes)));
    if (local_rank && std::in_range<int>(*local_rank)) done(static_cast<int>(*local_rank));
  }
}

}  // namespace elastic::process
