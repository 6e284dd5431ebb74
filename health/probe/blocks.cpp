#include "health/probe/blocks.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "src/base/check.h"

namespace elastic::health {
namespace {

std::uint64_t block_word(int rank, int repetition, std::size_t index) {
  const auto block = static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(repetition);
  return (block + 1) * 0xbf58476d1ce4e5b9 + index * 0x9e3779b97f4a7c15;
}

}  // namespace

void fill_block(Block& block, int rank, int repetition) {
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = block_word(rank, repetition, i);
}

std::size_t wrong_bytes(const Block& block, int rank, int repetition) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    std::uint64_t difference = block[i] ^ block_word(rank, repetition, i);
    for (; difference != 0; difference >>= 8) wrong += (difference & 0xff) != 0 ? 1 : 0;
  }
  return wrong;
}

std::expected<void, TransferFailure> transfer(int to, std::span<const std::byte> out, int from, std::span<std::byte> in,
                                              const Deadline& deadline) {
  using Where = TransferFailure::Where;
  const auto fails = [](Where where, std::string why) {
    return std::unexpected(TransferFailure{where, std::move(why)});
  };
  const auto may_go_on = [] { return errno == EAGAIN || errno == EINTR; };
  while (!out.empty() || !in.empty()) {
    if (deadline.has_passed()) return fails(Where::kDeadline, {});
    bool moved = false;
    if (!out.empty()) {
      const ssize_t sent = send(to, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && !may_go_on()) return fails(Where::kSending, connection_failure(errno));
      if (sent > 0) out = out.subspan(static_cast<std::size_t>(sent));
      moved = sent > 0;
    }
    if (!in.empty()) {
      const ssize_t got = recv(from, in.data(), in.size(), MSG_DONTWAIT);
      if (got == 0) return fails(Where::kReceiving, "it closed the connection during the test");
      if (got < 0 && !may_go_on()) return fails(Where::kReceiving, connection_failure(errno));
      if (got > 0) in = in.subspan(static_cast<std::size_t>(got));
      moved = moved || got > 0;
    }
    if (moved) continue;
    // poll() ignores negative descriptors.
    pollfd polled[] = {{out.empty() ? -1 : to, POLLOUT, 0}, {in.empty() ? -1 : from, POLLIN, 0}};
    poll(polled, 2, deadline.left_ms());
  }
  return {};
}

double middle_of(std::vector<double> times) {
  ELASTIC_CHECK(!times.empty());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace elastic::health
