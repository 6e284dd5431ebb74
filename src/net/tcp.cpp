#include "src/net/tcp.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/address.h"
#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::net {
namespace {

// The kernel limits the backlog to net.core.somaxconn; all workers of a node connect within milliseconds.
constexpr int kBacklog = 65535;
// The kernel detects that a peer's host has gone: after kSilentSeconds of
// silence it sends keep-alive probes, and after kGoneMs without an answer, or in which the
// peer took nothing of what was sent, the connection ends.
constexpr int kSilentSeconds = 60;
constexpr int kAskAgainSeconds = 10;
constexpr int kAskTimes = 6;
constexpr int kGoneMs = 120'000;
constexpr std::size_t kReadBytes = 64 * 1024;

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in*>(&address)->sin_port
                                            : reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
}

// The address without the port.
std::string host_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (address.ss_family == AF_INET) {
    uv_ip4_name(reinterpret_cast<const sockaddr_in*>(&address), host.data(), host.size());
  } else {
    uv_ip6_name(reinterpret_cast<const sockaddr_in6*>(&address), host.data(), host.size());
  }
  return host.data();
}

// The address of one end of the connection, by one of libuv's two functions; nothing where there is none.
std::optional<sockaddr_storage> end_of(const uv_tcp_t& handle, decltype(uv_tcp_getpeername)* which) {
  sockaddr_storage address{};
  int length = sizeof address;
  if (which(&handle, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return address;
}

// Parses a numeric address; false if it is not one.
bool to_address(const char* host, std::uint16_t port, sockaddr_storage& address) {
  return uv_ip4_addr(host, port, reinterpret_cast<sockaddr_in*>(&address)) == 0 ||
         uv_ip6_addr(host, port, reinterpret_cast<sockaddr_in6*>(&address)) == 0;
}

// Sets options of a listening socket, which each connection that it accepts inherits.
void set_options(uv_tcp_t* handle) {
  uv_os_fd_t fd = -1;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(handle), &fd) != 0) return;
  const auto set = [fd](int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kSilentSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kAskAgainSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kAskTimes);
  // While data is unacknowledged the kernel sends no probes, and would retransmit for a quarter of an hour.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kGoneMs);
}

}  // namespace

// Lives until libuv has closed the handle, which may be after the Stream has been destroyed.
struct Stream::State {
  uv_tcp_t handle{};
  Handlers handlers;
  bool closed = false;
  bool paused = false;
  std::size_t held_bytes = 0;  // see Stream::held_bytes()
  // One buffer serves all streams of the thread, for libuv passes on what it has read at once.
  static inline thread_local std::array<std::uint8_t, kReadBytes> read_buffer;

  void close() {
    if (closed) return;
    closed = true;
    uv_close(reinterpret_cast<uv_handle_t*>(&handle),
             [](uv_handle_t* gone) { delete static_cast<State*>(gone->data); });
  }

  // A write in libuv. It ends before the close callback of the handle is called, so the State still exists.
  struct Pending {
    State* state;
    uv_write_t request{};
    std::string bytes;                  // the bytes,
    std::shared_ptr<const void> owner;  // or their owner
    std::size_t held_bytes = 0;
  };
  void send(std::unique_ptr<Pending> pending, std::span<const uv_buf_t> what);
  void send_later(std::string&& bytes, std::size_t sent);

  static void on_sent(uv_write_t* request, int status) {
    State* const self = let_go(request);
    if (self->closed) return;
    if (status == 0) {
      if (self->held_bytes == 0 && self->handlers.on_drained) self->handlers.on_drained();
    } else if (self->paused) {  // otherwise reading fails, too
      self->end();
    }
  }

  static State* let_go(uv_write_t* request) {
    const std::unique_ptr<Pending> gone(static_cast<Pending*>(request->data));
    gone->state->held_bytes -= gone->held_bytes;
    return gone->state;
  }

  void end() {
    uv_read_stop(reinterpret_cast<uv_stream_t*>(&handle));
    paused = false;
    const auto ended = std::exchange(handlers.on_end, nullptr);
    if (!closed && ended) ended();
  }

  void read() {
    const int error = uv_read_start(reinterpret_cast<uv_stream_t*>(&handle), allocate, on_read);
    // A connection that has broken gives one of these errors.
    ELASTIC_CHECK(error == 0 || error == UV_EALREADY || error == UV_ENOTCONN);
  }

  static void allocate(uv_handle_t*, std::size_t, uv_buf_t* buffer) {
    *buffer = uv_buf_init(reinterpret_cast<char*>(read_buffer.data()), kReadBytes);
  }

  static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t*) {
    auto* self = static_cast<State*>(stream->data);
    if (count > 0) {
      self->handlers.on_data({read_buffer.data(), static_cast<std::size_t>(count)});
    } else if (count < 0) {
      self->end();
    }
  }
};

Stream::Stream(State* state) : state_(state) {}

Stream::~Stream() { state_->close(); }

void Stream::start(Handlers handlers) {
  state_->handlers = std::move(handlers);
  state_->read();
}

void Stream::write(std::string&& bytes) {
  ELASTIC_CHECK(bytes.size() <= INT_MAX);  // libuv's own limit for one buffer
  auto* stream = reinterpret_cast<uv_stream_t*>(&state_->handle);
  std::size_t sent = 0;
  if (uv_stream_get_write_queue_size(stream) == 0) {
    // uv_try_write() would do the same by write(), which costs the kernel more for a socket.
    uv_os_fd_t fd = -1;
    ELASTIC_CHECK(uv_fileno(reinterpret_cast<uv_handle_t*>(stream), &fd) == 0);
    const ssize_t result = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    // An error here comes again when reading, which ends the stream.
    if (result > 0) sent = static_cast<std::size_t>(result);
    if (sent == bytes.size()) return;
  }
  state_->send_later(std::move(bytes), sent);
}

// Keeps `bytes`, of which `sent` have been sent, until the kernel takes the rest.
void Stream::State::send_later(std::string&& bytes, std::size_t sent) {
  auto pending = std::make_unique<Pending>(this, uv_write_t{}, std::move(bytes));
  pending->held_bytes = sizeof(Pending) + pending->bytes.capacity();
  const uv_buf_t rest = uv_buf_init(pending->bytes.data() + sent, static_cast<unsigned>(pending->bytes.size() - sent));
  send(std::move(pending), {&rest, 1});
}

void Stream::State::send(std::unique_ptr<Pending> pending, std::span<const uv_buf_t> what) {
  uv_write_t* const request = &pending->request;
  request->data = pending.get();
  held_bytes += pending->held_bytes;
  pending.release();
  auto* stream = reinterpret_cast<uv_stream_t*>(&handle);
  if (uv_write(request, stream, what.data(), static_cast<unsigned>(what.size()), on_sent) != 0) let_go(request);
}

void Stream::write(std::span<const std::string_view> pieces, std::shared_ptr<const void> owner) {
  std::vector<uv_buf_t> buffers;
  buffers.reserve(pieces.size());
  for (const std::string_view piece : pieces) {
    buffers.push_back(uv_buf_init(const_cast<char*>(piece.data()), static_cast<unsigned>(piece.size())));
  }
  auto pending = std::make_unique<State::Pending>(state_, uv_write_t{}, std::string(), std::move(owner));
  pending->held_bytes = sizeof(State::Pending) + pieces.size() * sizeof(uv_buf_t);
  state_->send(std::move(pending), buffers);
}

void Stream::pause() {
  state_->paused = true;
  uv_read_stop(reinterpret_cast<uv_stream_t*>(&state_->handle));
}

void Stream::resume() {
  state_->paused = false;
  state_->read();
}

std::size_t Stream::unsent_bytes() const {
  return uv_stream_get_write_queue_size(reinterpret_cast<const uv_stream_t*>(&state_->handle));
}

std::size_t Stream::untaken_bytes() const {
  uv_os_fd_t fd = -1;
  int on_the_way = 0;
  if (uv_fileno(reinterpret_cast<const uv_handle_t*>(&state_->handle), &fd) != 0 ||
      ioctl(fd, SIOCOUTQ, &on_the_way) != 0) {
    return unsent_bytes();
  }
  return unsent_bytes() + static_cast<std::size_t>(on_the_way);
}

std::size_t Stream::held_bytes() const { return state_->held_bytes; }

std::string Stream::peer() const {
  const auto address = end_of(state_->handle, uv_tcp_getpeername);
  if (!address) return "unknown";
  const std::string host = host_of(*address);
  return format("{}:{}", address->ss_family == AF_INET ? host : "[" + host + "]", port_of(*address));
}

std::string Stream::peer_address() const {
  const auto address = end_of(state_->handle, uv_tcp_getpeername);
  return address ? without_mapping(host_of(*address)) : "";
}

std::string Stream::local_address() const {
  const auto address = end_of(state_->handle, uv_tcp_getsockname);
  return address ? without_mapping(host_of(*address)) : "";
}

void Stream::finish() {
  auto* request = new uv_shutdown_t;
  const auto done = [](uv_shutdown_t* gone, int) { delete gone; };
  if (uv_shutdown(request, reinterpret_cast<uv_stream_t*>(&state_->handle), done) != 0) delete request;
}

// Lives until libuv has called back, which may be after the Connector has been destroyed.
struct Connector::Attempt {
  uv_connect_t request{};
  Connector* owner;

  static void on_connect(uv_connect_t* request, int status) {
    const std::unique_ptr<Attempt> self(static_cast<Attempt*>(request->data));
    if (self->owner == nullptr) return;
    self->owner->attempt_ = nullptr;
    self->owner->end(status == 0 ? std::string() : errno_text(-status));
  }
};

Connector::Connector(Loop& loop, const std::string& address, std::uint16_t port, std::int64_t timeout_ms,
                     OnDone on_done)
    : what_(format("cannot connect to port {} of {}", port, printable(address))),
      on_done_(std::move(on_done)),
      timer_(loop) {
  sockaddr_storage where{};
  const auto fail_soon = [&](std::string reason) { timer_.start(0, [this, reason] { end(reason); }); };
  if (!to_address(address.c_str(), port, where)) {
    fail_soon("not a numeric address");
    return;
  }
  auto* state = new Stream::State;
  ELASTIC_CHECK(uv_tcp_init(loop.native(), &state->handle) == 0);
  state->handle.data = state;
  stream_ = std::make_unique<Stream>(state);
  attempt_ = new Attempt{{}, this};
  attempt_->request.data = attempt_;
  const int error =
      uv_tcp_connect(&attempt_->request, &state->handle, reinterpret_cast<sockaddr*>(&where), Attempt::on_connect);
  if (error != 0) {
    delete std::exchange(attempt_, nullptr);
    fail_soon(errno_text(-error));
    return;
  }
  set_options(&state->handle);
  timer_.start(timeout_ms, [this, timeout_ms] { end(format("no answer within {} ms", timeout_ms)); });
}

Connector::~Connector() {
  if (attempt_ != nullptr) attempt_->owner = nullptr;
}

void Connector::end(std::string reason) {
  timer_.stop();
  if (attempt_ != nullptr) std::exchange(attempt_, nullptr)->owner = nullptr;
  std::unique_ptr<Stream> stream = std::move(stream_);
  const OnDone done = std::move(on_done_);
  // This object may be destroyed in the call, so no member is used from here on.
  if (reason.empty()) return done(std::move(stream));
  stream.reset();
  done(fail(what_, std::move(reason)));
}

struct Listener::State {
  uv_tcp_t handle{};
  OnAccept on_accept;

  static void on_connection(uv_stream_t* server, int status) {
    auto* self = static_cast<State*>(server->data);
    if (status != 0) return;
    auto* state = new Stream::State;
    ELASTIC_CHECK(uv_tcp_init(server->loop, &state->handle) == 0);
    state->handle.data = state;
    auto stream = std::make_unique<Stream>(state);
    if (uv_accept(server, reinterpret_cast<uv_stream_t*>(&state->handle)) != 0) return;
    tell_if_last(&state->handle);
    self->on_accept(std::move(stream));
  }

  // When descriptors run out, libuv accepts and closes further connections, so that no client waits in vain.
  static void tell_if_last(const uv_tcp_t* accepted) {
    static bool told = false;
    uv_os_fd_t fd = -1;
    rlimit files{};
    if (told || uv_fileno(reinterpret_cast<const uv_handle_t*>(accepted), &fd) != 0) return;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || static_cast<rlim_t>(fd) + 1 < files.rlim_cur) return;
    told = true;
    log::warning("open_files",
                 format("the limit of open files, {}, is reached: further connections are refused; raise it "
                        "(ulimit -Hn)",
                        files.rlim_cur));
  }

  void close() {
    uv_close(reinterpret_cast<uv_handle_t*>(&handle),
             [](uv_handle_t* gone) { delete static_cast<State*>(gone->data); });
  }
};

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, const std::string& address, std::uint16_t port,
                                                 OnAccept on_accept) {
  const auto try_address = [&](const char* host) -> Result<std::unique_ptr<Listener>> {
    sockaddr_storage where{};
    if (!to_address(host, port, where)) {
      return fail(format("cannot listen on {}", printable(host)), "not a numeric address");
    }
    auto* state = new State;
    ELASTIC_CHECK(uv_tcp_init(loop.native(), &state->handle) == 0);
    state->handle.data = state;
    state->on_accept = on_accept;
    int error = uv_tcp_bind(&state->handle, reinterpret_cast<sockaddr*>(&where), 0);
    if (error == 0) {
      set_options(&state->handle);
      error = uv_listen(reinterpret_cast<uv_stream_t*>(&state->handle), kBacklog, State::on_connection);
    }
    if (error != 0) {
      state->close();
      return fail(format("cannot listen on port {} of {}", port, address.empty() ? "all addresses" : address),
                  errno_text(-error));
    }
    const auto bound = end_of(state->handle, uv_tcp_getsockname);
    return std::unique_ptr<Listener>(new Listener(state, bound ? port_of(*bound) : std::uint16_t{0}));
  };
  if (!address.empty()) return try_address(address.c_str());
  // [::] accepts IPv4, too; hosts without IPv6 have only 0.0.0.0.
  auto both = try_address("::");
  if (both || both.error().reason == errno_text(EADDRINUSE)) return both;
  return try_address("0.0.0.0");
}

Listener::~Listener() { state_->close(); }

std::size_t Listener::refuse_queued() {
  uv_os_fd_t fd = -1;
  ELASTIC_CHECK(uv_fileno(reinterpret_cast<uv_handle_t*>(&state_->handle), &fd) == 0);
  std::size_t count = 0;
  for (;;) {
    const int connection = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) {
      ::close(connection);
      ++count;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return count;
    }
  }
}

}  // namespace elastic::net
