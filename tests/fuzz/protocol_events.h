#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/byte_reader.h"

// The input of the agent protocol's fuzzer: a byte of settings, then events of both ends. Each begins with
// a byte, its kind (modulo kKinds), and goes on as said below. Where the input ends in the middle of an
// event, what is missing reads as 0.
namespace elastic::protocol_events {

// Settings.
inline constexpr std::uint8_t kNoSecret = 1;     // neither side has one
inline constexpr std::uint8_t kOtherSecret = 2;  // the coordinator has another one
inline constexpr std::uint8_t kKnowsJob = 4;     // the agent was in incarnation 11, term 3
inline constexpr std::uint8_t kNewerMinor = 8;   // the agent speaks 2.9
inline constexpr std::uint8_t kOtherMajor = 16;  // the agent speaks 1.0

enum Kind : std::uint8_t {
  kAgentSays,           // which message, and its fields; the first one is NodeJoins whatever is said
  kCoordinatorSays,     // which message, and its fields; Rejected before the welcome
  kKeepAlive,           //
  kLeaseGrant,          // number; it asks for the agent's support if that is even
  kWelcome,             // term, incarnation less 10
  kSetStamp,            // term, incarnation less 10
  kRefuse,              //
  kToCoordinator,       // how many of the bytes that are on their way; 0: all
  kToAgent,             // the same
  kForgeToCoordinator,  // type, incarnation, term, round, count, so many bytes of fields
  kForgeToAgent,        // the same
  kRawToCoordinator,    // count, so many bytes
  kRawToAgent,          // the same
  kPatchToCoordinator,  // place / 4, change, place % 4: of what is on its way
  kPatchToAgent,        // the same
  kGuardian,            // place, change
  kLeaseAck,            // number, the voter state
  kKinds,
};

// Numbers: below kWide the byte itself, else eight bytes follow. Texts: a count, so many bytes; kLongest:
// as long as may be.
inline constexpr std::uint8_t kWide = 0xF0;
inline constexpr std::uint8_t kLongest = 0xFF;

// Writes inputs.
class Writer {
 public:
  explicit Writer(std::uint8_t settings = 0) { byte(settings); }
  template <class... Bytes>
  Writer& event(Kind kind, Bytes... bytes) {
    return numbers(kind, bytes...);
  }
  template <class... Bytes>
  Writer& numbers(Bytes... bytes) {
    (byte(static_cast<std::uint8_t>(bytes)), ...);
    return *this;
  }
  Writer& bytes(std::string_view content) {
    byte(static_cast<std::uint8_t>(content.size()));
    input_ += content;
    return *this;
  }
  const std::string& input() const { return input_; }

 private:
  void byte(std::uint8_t value) { input_ += static_cast<char>(value); }
  std::string input_;
};

// Reads them; also the source of messages (rendezvous/protocol/test_messages.h).
class Reader : public fuzz::ByteReader {
 public:
  using ByteReader::ByteReader;

  std::uint64_t number() {
    const std::uint8_t first = byte();
    if (first < kWide) return first;
    std::uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number = number << 8 | byte();
    return number;
  }
  std::string text(std::size_t limit) {
    const std::uint8_t size = byte();
    if (size == kLongest) return std::string(limit, 'x');
    return std::string(bytes(size % 32));
  }
};

}  // namespace elastic::protocol_events
