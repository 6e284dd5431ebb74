#include "src/net/tcp.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <cerrno>
#include <climits>

#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::net {
namespace {

// The kernel cuts it down to net.core.somaxconn; all workers of a node connect within milliseconds.
constexpr int kBacklog = 65535;
// Silence after which the kernel asks whether the peer still lives.
constexpr unsigned kKeepAliveSeconds = 60;
constexpr std::size_t kReadBytes = 64 * 1024;

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (address.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
    uv_ip4_name(v4, host.data(), host.size());
    return format("{}:{}", host.data(), ntohs(v4->sin_port));
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  uv_ip6_name(v6, host.data(), host.size());
  return format("[{}]:{}", host.data(), ntohs(v6->sin6_port));
}

std::uint16_t bound_port(const uv_tcp_t* handle) {
  sockaddr_storage address{};
  int length = sizeof address;
  if (uv_tcp_getsockname(handle, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&address)->sin_port
                                            : reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
}

}  // namespace

// Lives until libuv has let go of the handle, which may be after the Stream has gone.
struct Stream::State {
  uv_tcp_t handle{};
  Handlers handlers;
  bool closed = false;
  // One buffer serves all streams of the thread: libuv reads into it and hands it over at once.
  static inline thread_local std::array<std::uint8_t, kReadBytes> read_buffer;

  void close() {
    if (closed) return;
    closed = true;
    uv_close(reinterpret_cast<uv_handle_t*>(&handle),
             [](uv_handle_t* gone) { delete static_cast<State*>(gone->data); });
  }

  static void allocate(uv_handle_t*, std::size_t, uv_buf_t* buffer) {
    *buffer = uv_buf_init(reinterpret_cast<char*>(read_buffer.data()), kReadBytes);
  }

  static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t*) {
    auto* self = static_cast<State*>(stream->data);
    if (count > 0) {
      self->handlers.on_data({read_buffer.data(), static_cast<std::size_t>(count)});
    } else if (count < 0) {
      uv_read_stop(stream);
      const auto ended = self->handlers.on_end;
      if (!self->closed && ended) ended();
    }
  }
};

Stream::Stream(State* state) : state_(state) {}

Stream::~Stream() { state_->close(); }

void Stream::start(Handlers handlers) {
  state_->handlers = std::move(handlers);
  ELASTIC_CHECK(uv_read_start(reinterpret_cast<uv_stream_t*>(&state_->handle), State::allocate,
                              State::on_read) == 0);
}

void Stream::write(std::string&& bytes) {
  ELASTIC_CHECK(bytes.size() <= INT_MAX);  // libuv's own limit for one buffer
  auto* stream = reinterpret_cast<uv_stream_t*>(&state_->handle);
  std::size_t sent = 0;
  if (uv_stream_get_write_queue_size(stream) == 0) {
    uv_buf_t now = uv_buf_init(bytes.data(), static_cast<unsigned>(bytes.size()));
    const int result = uv_try_write(stream, &now, 1);
    // An error here is seen again by the reader, which ends the stream.
    if (result > 0) sent = static_cast<std::size_t>(result);
    if (sent == bytes.size()) return;
  }
  struct Pending {
    uv_write_t request{};
    std::string bytes;
  };
  auto* pending = new Pending{{}, std::move(bytes)};
  pending->request.data = pending;
  uv_buf_t rest = uv_buf_init(pending->bytes.data() + sent,
                              static_cast<unsigned>(pending->bytes.size() - sent));
  const auto done = [](uv_write_t* request, int) { delete static_cast<Pending*>(request->data); };
  if (uv_write(&pending->request, stream, &rest, 1, done) != 0) delete pending;
}

std::size_t Stream::unsent_bytes() const {
  return uv_stream_get_write_queue_size(reinterpret_cast<const uv_stream_t*>(&state_->handle));
}

std::string Stream::peer() const {
  sockaddr_storage address{};
  int length = sizeof address;
  const int failed =
      uv_tcp_getpeername(&state_->handle, reinterpret_cast<sockaddr*>(&address), &length);
  return failed != 0 ? "unknown" : address_text(address);
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
    uv_tcp_nodelay(&state->handle, 1);
    // A peer whose host has gone without a word is found out by the kernel.
    uv_tcp_keepalive(&state->handle, 1, kKeepAliveSeconds);
    self->on_accept(std::move(stream));
  }

  // libuv closes further connections without a word, so that nobody waits for an answer that can't come.
  static void tell_if_last(const uv_tcp_t* accepted) {
    static bool told = false;
    uv_os_fd_t fd = -1;
    rlimit files{};
    if (told || uv_fileno(reinterpret_cast<const uv_handle_t*>(accepted), &fd) != 0) return;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || static_cast<rlim_t>(fd) + 1 < files.rlim_cur) return;
    told = true;
    log::warning(format("the limit of open files, {}, is reached: further connections are refused; raise it "
                        "(ulimit -Hn)", files.rlim_cur));
  }

  void close() {
    uv_close(reinterpret_cast<uv_handle_t*>(&handle),
             [](uv_handle_t* gone) { delete static_cast<State*>(gone->data); });
  }
};

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, const std::string& address,
                                                 std::uint16_t port, OnAccept on_accept) {
  const auto try_address = [&](const char* host) -> Result<std::unique_ptr<Listener>> {
    sockaddr_storage where{};
    if (uv_ip4_addr(host, port, reinterpret_cast<sockaddr_in*>(&where)) != 0 &&
        uv_ip6_addr(host, port, reinterpret_cast<sockaddr_in6*>(&where)) != 0) {
      return fail(format("cannot listen on {}", printable(host)), "not a numeric address");
    }
    auto* state = new State;
    ELASTIC_CHECK(uv_tcp_init(loop.native(), &state->handle) == 0);
    state->handle.data = state;
    state->on_accept = on_accept;
    int error = uv_tcp_bind(&state->handle, reinterpret_cast<sockaddr*>(&where), 0);
    if (error == 0) {
      error =
          uv_listen(reinterpret_cast<uv_stream_t*>(&state->handle), kBacklog, State::on_connection);
    }
    if (error != 0) {
      state->close();
      return fail(format("cannot listen on port {} of {}", port,
                         address.empty() ? "all addresses" : address),
                  errno_text(-error));
    }
    return std::unique_ptr<Listener>(new Listener(state, bound_port(&state->handle)));
  };
  if (!address.empty()) return try_address(address.c_str());
  // [::] takes IPv4 too; hosts without IPv6 have only 0.0.0.0.
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
