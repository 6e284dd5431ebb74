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

// How the probes of two nodes connect to each other over TCP. The node with the lower rank waits, the other one
// connects to all addresses of the former at once. On each connection that is made (numbers are big-endian):
//
//   connecting side   "elprobe1", the other's key (32 bytes), its own rank (4), a number of its attempt (8)
//   waiting side      when it is this node's turn: "elprobe+", its own rank (4), the number of the attempt (8)
//   connecting side   "!" on the first connection with such an answer; it closes the others
//
// The key keeps out accidental connections (port scanners, another job's probes), not an attacker who can read the
// network.
namespace elastic::health {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kHelloBytes = 8 + kKeyBytes + 4 + 8;
inline constexpr std::size_t kAnswerBytes = 8 + 4 + 8;

// 128 random bits in 32 hexadecimal digits.
std::string make_key();

// The TCP port at which other probes find this one. A probe that connects early is kept until its turn. A connection
// without a valid hello delays no other one. Connections are accepted in await_peer() only; until then they wait in the
// kernel.
class Listener {
 public:
  // Listens at a free port on all addresses, IPv4 and IPv6 where the host has both.
  static Result<Listener> open(std::string key);

  std::uint16_t port() const { return port_; }
  const std::string& key() const { return key_; }

  // Returns the connection that the probe of rank `peer` has chosen; it is nonblocking. `rank` is our own. A probe that
  // has connected must send its hello within `hello_ms`.
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

// Returns a connection to the probe that `order` names; it is nonblocking. `rank` is our own. An address is given up if
// it is not connected within `connect_ms`. The other probe answers when it is our turn, and has to do so by the
// deadline.
Attempt<UniqueFd> connect_to_peer(int rank, const PairOrder& order, std::int64_t connect_ms, const Deadline& deadline);

}  // namespace elastic::health
