#include "tests/bench/store_load_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "rendezvous/store/test_requests.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::store_load {
namespace {

// Descriptors that are no sockets: the standard ones, epoll, some that were inherited.
constexpr std::size_t kOtherDescriptors = 32;
constexpr std::size_t kReadBytes = 64 * 1024;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<Address> address_of(const Options& options) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, options.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(options.port);
    address.size = sizeof *v4;
  } else if (inet_pton(AF_INET6, options.host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(options.port);
    address.size = sizeof *v6;
  } else {
    return fail(format("--host={}", printable(options.host)), "not a numeric address");
  }
  return address;
}

// The connections that open_greeted() is making.
class Opening {
 public:
  Opening(const Options& options, const Address& address, std::size_t count, Histogram* latency)
      : options_(options), address_(address), latency_(latency), sockets_(count), began_ns_(count), state_(count) {
    store::test::put_hello(greeting_);
    store::test::put_ping(greeting_, kNonce);
  }

  Result<std::vector<Socket>> run() {
    while (ready_ < sockets_.size()) {
      while (begun_ < sockets_.size() && begun_ - ready_ < kOpening) {
        if (auto begun = begin(begun_++); !begun) return std::unexpected(std::move(begun.error()));
      }
      const auto events = poller_.wait();
      if (events.empty()) return std::unexpected(lost(options_, "it does not answer VALIDATE and PING"));
      for (const epoll_event& event : events) {
        if (auto gone_on = go_on(event.data.u64); !gone_on) return std::unexpected(std::move(gone_on.error()));
      }
    }
    return std::move(sockets_);
  }

 private:
  static constexpr std::uint32_t kNonce = 0x5AA5C33C;
  enum class State : std::uint8_t { kConnecting, kGreeting, kReady };

  Status begin(std::size_t index) {
    began_ns_[index] = now_ns();
    const int family = address_.storage.ss_family;
    Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.open()) return std::unexpected(lost(options_, errno_text(errno)));
    const int on = 1;
    setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int result = connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address_.storage), address_.size);
    if (result != 0 && errno != EINPROGRESS) return std::unexpected(lost(options_, errno_text(errno)));
    poller_.add(socket, index, EPOLLOUT);
    sockets_[index] = std::move(socket);
    return {};
  }

  Status go_on(std::size_t index) {
    const Socket& socket = sockets_[index];
    if (state_[index] == State::kConnecting) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return std::unexpected(lost(options_, errno_text(error)));
      std::string_view greeting = greeting_;
      if (!socket.send(greeting)) return std::unexpected(lost(options_, errno_text(errno)));
      ELASTIC_CHECK(greeting.empty());  // the first few bytes always find room
      state_[index] = State::kGreeting;
      poller_.change(socket, index, EPOLLIN);
      return {};
    }
    if (state_[index] == State::kReady) return {};
    store::Bytes bytes;
    if (!socket.receive(bytes)) {
      return std::unexpected(lost(options_, "it closed a connection after VALIDATE and PING"));
    }
    std::uint32_t nonce = 0;
    if (bytes.size() != sizeof nonce) return std::unexpected(lost(options_, "its answer to PING is wrong"));
    std::memcpy(&nonce, bytes.data(), sizeof nonce);
    if (nonce != kNonce) return std::unexpected(lost(options_, "its answer to PING is wrong"));
    state_[index] = State::kReady;
    poller_.change(socket, index, 0);
    if (latency_ != nullptr) latency_->add(now_ns() - began_ns_[index]);
    ++ready_;
    return {};
  }

  const Options& options_;
  const Address& address_;
  Histogram* latency_;
  std::string greeting_;
  Poller poller_;
  std::vector<Socket> sockets_;
  std::vector<std::int64_t> began_ns_;
  std::vector<State> state_;
  std::size_t begun_ = 0;
  std::size_t ready_ = 0;
};

}  // namespace

Socket::~Socket() {
  if (fd_ < 0) return;
  const linger reset{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd_);
}

bool Socket::send(std::string_view& bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool Socket::receive(store::Bytes& bytes) const {
  static std::array<std::uint8_t, kReadBytes> buffer;
  const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
  if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
  bytes = store::Bytes(buffer).first(count < 0 ? 0 : static_cast<std::size_t>(count));
  return true;
}

Poller::Poller() : fd_(epoll_create1(EPOLL_CLOEXEC)), events_(256) { ELASTIC_CHECK(fd_ >= 0); }

Poller::~Poller() { close(fd_); }

void Poller::add(const Socket& socket, std::uint64_t number, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = number}};
  ELASTIC_CHECK(epoll_ctl(fd_, EPOLL_CTL_ADD, socket.fd(), &event) == 0);
}

void Poller::change(const Socket& socket, std::uint64_t number, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = number}};
  ELASTIC_CHECK(epoll_ctl(fd_, EPOLL_CTL_MOD, socket.fd(), &event) == 0);
}

std::span<const epoll_event> Poller::wait(int timeout_ms) {
  const int count = epoll_wait(fd_, events_.data(), static_cast<int>(events_.size()), timeout_ms);
  return std::span(events_).first(count < 0 ? 0 : static_cast<std::size_t>(count));
}

Status allow_sockets(std::size_t count) {
  rlimit files{};
  ELASTIC_CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max >= count + kOtherDescriptors) return {};
  return fail(format("cannot open {} connections", count), format("the hard limit of open files is {}", files.rlim_max),
              format("raise it to {} (ulimit -Hn), or take fewer", count + kOtherDescriptors));
}

Result<std::vector<Socket>> open_greeted(const Options& options, std::size_t count, Histogram* latency) {
  const auto address = address_of(options);
  if (!address) return std::unexpected(address.error());
  return Opening(options, *address, count, latency).run();
}

Error lost(const Options& options, std::string reason) {
  return {format("store at {} port {}", options.host, options.port), std::move(reason), {}};
}

}  // namespace elastic::store_load
