#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/store/codec.h"
#include "tests/bench/store_load.h"

namespace elastic::store_load {

// Longest silence of a server before it counts as dead.
inline constexpr int kPatienceMs = 10'000;

// A non-blocking socket. Closing it resets the connection, so that no port stays behind in TIME_WAIT.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

  // Sends from the front of `bytes` what the kernel takes, and removes it. False: the connection is lost.
  bool send(std::string_view& bytes) const;
  // What has come, at most 64 KiB, valid until the next call of any; empty if nothing has.
  // False: the connection is lost.
  bool receive(store::Bytes& bytes) const;

 private:
  int fd_;
};

// What epoll tells, each descriptor being known by a number.
class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void add(const Socket& socket, std::uint64_t number, std::uint32_t events);
  void change(const Socket& socket, std::uint64_t number, std::uint32_t events);
  // The next events; none if nothing happened for so long.
  std::span<const epoll_event> wait(int timeout_ms = kPatienceMs);

 private:
  int fd_;
  std::vector<epoll_event> events_;
};

// Allows this process that many sockets. Fails if the hard limit is lower.
Status allow_sockets(std::size_t count);

// Connects that many clients, which say VALIDATE and PING and wait for the answer, at most
// `kOpening` of them at a time. `latency`: from connect() to the answer.
inline constexpr std::size_t kOpening = 4000;  // below the usual accept queue of 4,096
Result<std::vector<Socket>> open_greeted(const Options& options, std::size_t count, Histogram* latency = nullptr);

// What a connection's end looks like in a message.
Error lost(const Options& options, std::string reason);

}  // namespace elastic::store_load
