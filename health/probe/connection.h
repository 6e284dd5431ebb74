#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "health/messages/messages.h"
#include "health/probe/attempt.h"
#include "src/base/result.h"
#include "src/base/unique_fd.h"

// How the probes of two nodes get a TCP connection to each other. The lower rank waits, the higher connects, to all
// addresses of the other at once. On each connection that comes about (numbers are big-endian):
//
//   connecting side   "elprobe1", the other's key (32 bytes), its own rank (4), a number of its attempt (8)
//   waiting side      "elprobe+", its own rank (4), the number of the attempt (8), when it is this node's turn
//   connecting side   "!" on the first connection that is answered so; it closes the others
//
// The key keeps accidents away (port scanners, another job's probes), not those who can read the network.
namespace elastic::health {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kHelloBytes = 8 + kKeyBytes + 4 + 8;
inline constexpr std::size_t kAnswerBytes = 8 + 4 + 8;

// 128 random bits in 32 hexadecimal digits.
std::string make_key();

// The TCP port at which a probe is found. Who comes early is kept until it is its turn; who says nothing, or anything
// but the hello of one who knows the key, holds up nobody. Connections are accepted in await_peer() only; until then
// the kernel keeps them.
class Listener {
 public:
  // At a free port of all addresses, IPv4 and IPv6 where the host has both.
  static Result<Listener> open(std::string key);

  std::uint16_t port() const { return port_; }
  const std::string& key() const { return key_; }

  // The connection, nonblocking, that the probe of rank `peer` has chosen; `rank` is our own. Who has connected must
  // have said hello within `hello_ms`.
  Attempt<UniqueFd> await_peer(int rank, int peer, const Deadline& deadline, std::int64_t hello_ms);

 private:
  enum class Step { kSaysHello, kKept, kAnswered, kChosen, kGone };
  struct Guest {
    UniqueFd socket;
    Deadline hello;
    Step step = Step::kSaysHello;
    std::array<std::uint8_t, kHelloBytes> said = {};
    std::size_t bytes_said = 0;
    int rank() const;
    std::uint64_t attempt() const;
  };

  Listener() = default;
  Status accept_guests(std::int64_t hello_ms);
  void hear(Guest& guest) const;
  void hear_hello(Guest& guest) const;

  UniqueFd socket_;
  std::uint16_t port_ = 0;
  std::string key_;
  std::vector<Guest> guests_;
};

// The connection, nonblocking, to the probe that `order` names; `rank` is our own. Each address must be connected
// within `connect_ms`; by the deadline one of them must have answered, which it does when it is our turn.
Attempt<UniqueFd> connect_to_peer(int rank, const PairOrder& order, std::int64_t connect_ms, const Deadline& deadline);

}  // namespace elastic::health
