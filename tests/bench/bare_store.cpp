// The floor for a TCPStore server: epoll, one read and one write for each readiness, an unordered_map, and
// no more. It answers well-formed VALIDATE, SET, GET, ADD, CHECK, WAIT and PING, and believes what it is told:
// no bound, no log, no other request. Prints its port; ends when stdin does.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

enum Request : std::uint8_t { kValidate = 0, kSet = 1, kGet = 3, kAdd = 4, kCheck = 5, kWait = 6, kPing = 13 };

struct Connection {
  int fd;
  std::uint32_t missing = 0;  // keys that its WAIT waits for
  std::string rest;           // of a request that has not come whole
  std::string unsent;
};

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <class Value>
using Map = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

int poller = -1;
Map<std::string> values;
Map<std::vector<Connection*>> waiters;
std::vector<std::unique_ptr<Connection>> connections;  // by descriptor
std::array<char, 64 * 1024> buffer;
std::string replies;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void watch(int fd, int operation, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (epoll_ctl(poller, operation, fd, &event) != 0) fail("epoll_ctl");
}

void close_connection(Connection& connection) {
  if (connection.missing > 0) {
    for (auto& [key, waiting] : waiters) std::erase(waiting, &connection);
  }
  close(connection.fd);
  connections[static_cast<std::size_t>(connection.fd)].reset();
}

void send_to(Connection& connection, std::string_view bytes) {
  if (connection.unsent.empty()) {
    const ssize_t sent = send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(bytes.size())) return;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    watch(connection.fd, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  }
  connection.unsent += bytes;
}

void send_unsent(Connection& connection) {
  const ssize_t sent = send(connection.fd, connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL);
  if (sent > 0) connection.unsent.erase(0, static_cast<std::size_t>(sent));
  if (connection.unsent.empty()) watch(connection.fd, EPOLL_CTL_MOD, EPOLLIN);
}

// Reads a request in place; `whole` turns false where its bytes end.
struct Reader {
  std::string_view bytes;
  bool whole = true;

  template <class Number>
  Number number() {
    Number value{};
    if (bytes.size() < sizeof value) {
      whole = false;
      return value;
    }
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const auto size = number<std::uint64_t>();
    if (!whole || bytes.size() < size) {
      whole = false;
      return {};
    }
    const std::string_view found = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return found;
  }
};

template <class Number>
void reply(Number value) {
  replies.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void wake(std::string_view key) {
  if (waiters.empty()) return;
  const auto found = waiters.find(key);
  if (found == waiters.end()) return;
  for (Connection* const waiting : found->second) {
    if (--waiting->missing == 0) send_to(*waiting, std::string_view("\0", 1));
  }
  waiters.erase(found);
}

void put(std::string_view key, std::string_view value) {
  const auto found = values.find(key);
  if (found != values.end()) {
    found->second = value;
  } else {
    values.emplace(key, value);
  }
  wake(key);
}

void add(std::string_view key, std::int64_t delta) {
  std::int64_t sum = 0;
  const auto found = values.find(key);
  if (found != values.end()) std::from_chars(found->second.data(), found->second.data() + found->second.size(), sum);
  sum += delta;
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), sum).ptr;
  const std::string_view value(digits.data(), static_cast<std::size_t>(end - digits.data()));
  if (found != values.end()) {
    found->second = value;
  } else {
    values.emplace(key, value);
  }
  wake(key);
  reply(sum);
}

void check_or_wait(Connection& connection, Reader& reader, bool wait) {
  const auto count = reader.number<std::uint64_t>();
  static std::vector<std::string_view> keys;
  keys.clear();
  for (std::uint64_t i = 0; reader.whole && i < count; ++i) keys.push_back(reader.text());
  if (!reader.whole) return;
  std::uint32_t missing = 0;
  for (const std::string_view key : keys) {
    if (values.contains(key)) continue;
    ++missing;
    if (wait) waiters[std::string(key)].push_back(&connection);
  }
  if (wait) connection.missing = missing;
  if (!wait || missing == 0) reply(static_cast<std::uint8_t>(missing > 0));
}

// Answers the first request of the bytes and takes it off; false if it is not whole.
bool answer_one(Connection& connection, std::string_view& bytes) {
  Reader reader{bytes};
  switch (reader.number<std::uint8_t>()) {
    case kValidate: reader.number<std::uint32_t>(); break;
    case kSet: {
      const std::string_view key = reader.text(), value = reader.text();
      if (reader.whole) put(key, value);
      break;
    }
    case kGet: {
      const std::string_view key = reader.text();
      if (!reader.whole) break;
      const auto found = values.find(key);
      const std::string_view value = found == values.end() ? std::string_view() : found->second;
      reply(std::uint64_t{value.size()});
      replies += value;
      break;
    }
    case kAdd: {
      const std::string_view key = reader.text();
      const auto delta = reader.number<std::int64_t>();
      if (reader.whole) add(key, delta);
      break;
    }
    case kCheck: check_or_wait(connection, reader, false); break;
    case kWait: check_or_wait(connection, reader, true); break;
    case kPing: {
      const auto nonce = reader.number<std::uint32_t>();
      if (reader.whole) reply(nonce);
      break;
    }
    default: std::fputs("bare_store: a request that it does not know\n", stderr); std::exit(1);
  }
  if (reader.whole) bytes = reader.bytes;
  return reader.whole;
}

void serve(Connection& connection) {
  const ssize_t count = read(connection.fd, buffer.data(), buffer.size());
  if (count <= 0) {
    if (count == 0 || errno != EAGAIN) close_connection(connection);
    return;
  }
  std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
  if (!connection.rest.empty()) bytes = connection.rest.append(bytes);
  while (!bytes.empty() && answer_one(connection, bytes)) {
  }
  connection.rest = std::string(bytes);
  if (replies.empty()) return;
  send_to(connection, replies);
  replies.clear();
}

void accept_all(int listener) {
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connections.size() <= static_cast<std::size_t>(fd)) connections.resize(static_cast<std::size_t>(fd) + 1);
    connections[static_cast<std::size_t>(fd)] = std::make_unique<Connection>(fd);
    watch(fd, EPOLL_CTL_ADD, EPOLLIN);
  }
}

int listen_anywhere() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, 65535) != 0) fail("listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  std::printf("port %d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

}  // namespace

int main() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(EPOLL_CLOEXEC);
  const int listener = listen_anywhere();
  watch(listener, EPOLL_CTL_ADD, EPOLLIN);
  watch(STDIN_FILENO, EPOLL_CTL_ADD, EPOLLIN);
  std::array<epoll_event, 1024> events;
  for (;;) {
    const int count = epoll_wait(poller, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == STDIN_FILENO) return 0;
      if (fd == listener) {
        accept_all(listener);
        continue;
      }
      Connection* const connection = connections[static_cast<std::size_t>(fd)].get();
      if (connection == nullptr) continue;
      if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) send_unsent(*connection);
      if ((events[static_cast<std::size_t>(i)].events & ~std::uint32_t{EPOLLOUT}) != 0) serve(*connection);
    }
  }
}
