#include "health/probe/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

constexpr std::string_view kHelloMagic = "elprobe1";
constexpr std::string_view kAnswerMagic = "elprobe+";
constexpr char kChosenByte = '!';
constexpr std::size_t kMostAddresses = 8;
constexpr std::size_t kMostGuests = 64;  // two nodes may connect in a phase, each at most kMostAddresses times
constexpr int kBacklog = 1024;

using Bytes = std::span<const std::uint8_t>;

void append(std::vector<std::uint8_t>& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }

void append_number(std::vector<std::uint8_t>& out, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0;) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

std::uint64_t number_at(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : bytes.subspan(at, count)) number = number << 8 | byte;
  return number;
}

// Compares in a time that does not depend on how much is the same.
bool is_same(Bytes bytes, std::string_view text) {
  ELASTIC_CHECK(bytes.size() == text.size());
  int difference = 0;
  for (std::size_t i = 0; i < text.size(); ++i) difference |= bytes[i] ^ static_cast<std::uint8_t>(text[i]);
  return difference == 0;
}

template <class Value>
Value random_value() {
  Value value;
  ssize_t got;
  do got = getrandom(&value, sizeof value, 0);
  while (got < 0 && errno == EINTR);
  ELASTIC_CHECK(got == sizeof value);
  return value;
}

// So few bytes fit into the send buffer of any working connection.
bool send_at_once(int socket, Bytes bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

void set_no_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::optional<SocketAddress> socket_address(const std::string& at, std::uint16_t port) {
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  SocketAddress out;
  if (inet_pton(AF_INET, at.c_str(), &four.sin_addr) == 1) {
    std::memcpy(&out.storage, &four, out.length = sizeof four);
  } else if (inet_pton(AF_INET6, at.c_str(), &six.sin6_addr) == 1) {
    std::memcpy(&out.storage, &six, out.length = sizeof six);
  } else {
    return {};
  }
  return out;
}

// Returns no descriptor, and sets errno, where it fails.
UniqueFd listening_socket(int family, const char* any) {
  UniqueFd listening(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listening) return {};
  const int off = 0;
  if (family == AF_INET6) setsockopt(listening.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const SocketAddress address = *socket_address(any, 0);
  if (bind(listening.get(), address.get(), address.length) < 0 || listen(listening.get(), kBacklog) < 0) return {};
  return listening;
}

// One address of the other node, and the state of the connection to it.
struct Candidate {
  std::string at;
  UniqueFd socket = {};
  bool is_connected = false;
  std::array<std::uint8_t, kAnswerBytes> heard = {};
  std::size_t bytes_heard = 0;
  std::string why_not = {};  // why it was given up; empty: it is still tried

  void give_up(std::string why) {
    why_not = std::move(why);
    socket = UniqueFd();
  }

  void start(std::uint16_t port) {
    const auto address = socket_address(at, port);
    if (!address) return give_up("this is not an address");
    socket = UniqueFd(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket || (connect(socket.get(), address->get(), address->length) < 0 && errno != EINPROGRESS)) {
      give_up(connection_failure(errno));
    }
  }

  // Called when the socket is writable.
  void say_hello(Bytes hello) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return give_up(connection_failure(error));
    set_no_delay(socket.get());
    if (!send_at_once(socket.get(), hello)) return give_up(connection_failure(errno));
    is_connected = true;
  }

  // Called when the socket is readable. Returns whether the whole answer has come and is right.
  bool hear(Bytes answer) {
    const ssize_t got = recv(socket.get(), heard.data() + bytes_heard, heard.size() - bytes_heard, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got < 0) give_up(connection_failure(errno));
    if (got == 0) give_up("it closed the connection before the test");
    if (got <= 0) return false;
    bytes_heard += static_cast<std::size_t>(got);
    const bool is_right = std::ranges::equal(Bytes(heard).first(bytes_heard), answer.first(bytes_heard));
    if (!is_right) give_up("what answers there is not its probe");
    return is_right && bytes_heard == heard.size();
  }
};

// Why no address could be connected, with addresses that failed alike named together: "it refused the connection
// (10.0.0.4, fd77::4 port 4000)".
std::string what_became_of(const std::vector<Candidate>& candidates, std::uint16_t port) {
  std::vector<std::pair<std::string, std::vector<std::string>>> fates;
  for (const Candidate& candidate : candidates) {
    auto fate = std::ranges::find(fates, candidate.why_not, &decltype(fates)::value_type::first);
    if (fate == fates.end()) fate = fates.insert(fates.end(), {candidate.why_not, {}});
    fate->second.push_back(printable(candidate.at, 60));
  }
  std::vector<std::string> clauses;
  for (const auto& [why_not, at] : fates) clauses.push_back(format("{} ({} port {})", why_not, join(at, ", "), port));
  return join(clauses, "; ");
}

}  // namespace

std::string make_key() {
  std::string key;
  for (const std::uint8_t byte : random_value<std::array<std::uint8_t, kKeyBytes / 2>>()) key += format("{:02x}", byte);
  return key;
}

int Listener::Guest::rank() const { return static_cast<int>(number_at(said, 40, 4)); }
std::uint64_t Listener::Guest::attempt() const { return number_at(said, 44, 8); }

Result<Listener> Listener::open(std::string key) {
  ELASTIC_CHECK(key.size() == kKeyBytes);
  Listener out;
  out.key_ = std::move(key);
  out.socket_ = listening_socket(AF_INET6, "::");
  if (!out.socket_) out.socket_ = listening_socket(AF_INET, "0.0.0.0");
  SocketAddress address;
  address.length = sizeof address.storage;
  if (!out.socket_ || getsockname(out.socket_.get(), address.get(), &address.length) < 0) {
    return fail_errno("cannot listen for other nodes", errno);
  }
  // Both families have the port at the same offset.
  out.port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  return out;
}

Attempt<UniqueFd> Listener::await_peer(int rank, int peer, const Deadline& deadline, std::int64_t hello_ms) {
  const auto is_peers = [&](const Guest& guest) { return guest.step != Step::kSaysHello && guest.rank() == peer; };
  for (;;) {
    for (Guest& guest : guests_) {
      if (guest.step != Step::kKept || !is_peers(guest)) continue;
      std::vector<std::uint8_t> answer;
      append(answer, kAnswerMagic);
      append_number(answer, static_cast<std::uint32_t>(rank), 4);
      append_number(answer, guest.attempt(), 8);
      guest.step = send_at_once(guest.socket.get(), answer) ? Step::kAnswered : Step::kGone;
    }
    std::erase_if(guests_, [](const Guest& guest) { return guest.step == Step::kGone; });
    if (deadline.has_passed()) {
      std::erase_if(guests_, is_peers);
      return std::unexpected(format("no connection within {} (port {})", deadline.span(), port_));
    }
    std::vector<pollfd> polled = {{socket_.get(), POLLIN, 0}};
    int timeout_ms = deadline.left_ms();
    for (const Guest& guest : guests_) {
      polled.push_back({guest.socket.get(), POLLIN, 0});
      if (guest.step == Step::kSaysHello) timeout_ms = std::min(timeout_ms, guest.hello.left_ms());
    }
    if (poll(polled.data(), polled.size(), timeout_ms) < 0) continue;
    for (std::size_t i = 0; i < guests_.size(); ++i) {
      Guest& guest = guests_[i];
      if (polled[i + 1].revents != 0) hear(guest);
      if (guest.step == Step::kSaysHello && guest.hello.has_passed()) guest.step = Step::kGone;
      if (guest.step != Step::kChosen) continue;
      UniqueFd chosen = std::move(guest.socket);
      std::erase_if(guests_, is_peers);
      return chosen;
    }
    if (polled[0].revents == 0) continue;
    if (const Status accepted = accept_guests(hello_ms); !accepted) return std::unexpected(accepted.error().text());
  }
}

Status Listener::accept_guests(std::int64_t hello_ms) {
  for (;;) {
    UniqueFd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      // All other errors are those of the connection that came, not ours.
      const bool is_ours = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (is_ours) return fail_errno("cannot accept a connection", errno);
      return {};
    }
    set_no_delay(socket.get());
    if (guests_.size() >= kMostGuests) {
      const auto silent = std::ranges::find(guests_, Step::kSaysHello, &Guest::step);
      if (silent == guests_.end()) continue;
      guests_.erase(silent);
    }
    guests_.push_back({std::move(socket), Deadline(hello_ms)});
    // A hello that has come already is read now, so that this connection is not dropped as a silent one.
    hear(guests_.back());
  }
}

void Listener::hear(Guest& guest) const {
  if (guest.step == Step::kSaysHello) return hear_hello(guest);
  char byte = 0;
  const ssize_t got = recv(guest.socket.get(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // A probe that was not answered yet sends nothing, so this one has gone or is another program.
  guest.step = guest.step == Step::kAnswered && got == 1 && byte == kChosenByte ? Step::kChosen : Step::kGone;
}

void Listener::hear_hello(Guest& guest) const {
  const std::size_t left = guest.said.size() - guest.bytes_said;
  const ssize_t got = recv(guest.socket.get(), guest.said.data() + guest.bytes_said, left, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    guest.step = Step::kGone;
    return;
  }
  guest.bytes_said += static_cast<std::size_t>(got);
  if (guest.bytes_said < guest.said.size()) return;
  const Bytes said = guest.said;
  const bool is_right = is_same(said.first(kHelloMagic.size()), kHelloMagic) &&
                        is_same(said.subspan(kHelloMagic.size(), kKeyBytes), key_);
  guest.step = is_right ? Step::kKept : Step::kGone;
}

Attempt<UniqueFd> connect_to_peer(int rank, const PairOrder& order, std::int64_t connect_ms, const Deadline& deadline) {
  if (order.key.size() != kKeyBytes) return std::unexpected("it has no key");
  if (order.at.empty()) return std::unexpected("none of its addresses is known");
  const auto attempt = random_value<std::uint64_t>();
  std::vector<std::uint8_t> hello;
  append(hello, kHelloMagic);
  append(hello, order.key);
  append_number(hello, static_cast<std::uint32_t>(rank), 4);
  append_number(hello, attempt, 8);
  std::vector<std::uint8_t> answer;
  append(answer, kAnswerMagic);
  append_number(answer, static_cast<std::uint32_t>(order.with), 4);
  append_number(answer, attempt, 8);

  const Deadline connect_deadline(connect_ms);
  std::vector<Candidate> candidates;
  for (const std::string& at : order.at) {
    if (candidates.size() < kMostAddresses) candidates.push_back({.at = at});
  }
  for (Candidate& candidate : candidates) candidate.start(order.port);
  for (;;) {
    std::vector<pollfd> polled;
    int timeout_ms = deadline.left_ms();
    for (Candidate& candidate : candidates) {
      const Deadline& own = candidate.is_connected ? deadline : connect_deadline;
      if (candidate.why_not.empty() && own.has_passed()) {
        const char* what = candidate.is_connected ? "it did not answer" : "no connection";
        candidate.give_up(format("{} within {}", what, own.span()));
      }
      // poll() ignores the -1 of an address that was given up.
      polled.push_back({candidate.socket.get(), static_cast<short>(candidate.is_connected ? POLLIN : POLLOUT), 0});
      if (candidate.why_not.empty()) timeout_ms = std::min(timeout_ms, own.left_ms());
    }
    if (std::ranges::none_of(candidates, &std::string::empty, &Candidate::why_not)) break;
    if (poll(polled.data(), polled.size(), timeout_ms) < 0) continue;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate& candidate = candidates[i];
      if (polled[i].revents == 0) continue;
      if (!candidate.is_connected) {
        candidate.say_hello(hello);
      } else if (candidate.hear(answer)) {
        const std::uint8_t chosen[] = {kChosenByte};
        if (send_at_once(candidate.socket.get(), chosen)) return std::move(candidate.socket);
        candidate.give_up(connection_failure(errno));
      }
    }
  }
  return std::unexpected(what_became_of(candidates, order.port));
}

}  // namespace elastic::health
