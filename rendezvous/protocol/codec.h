#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol/messages.h"

// Encodes and decodes the frames of the agent protocol. docs/agent-protocol.md specifies every byte. What a frame
// means, and when it may come, is in session.h.
namespace elastic::protocol {

using Bytes = std::span<const std::uint8_t>;
using ByteString = std::vector<std::uint8_t>;
using Nonce = std::array<std::uint8_t, 32>;
using Proof = std::array<std::uint8_t, 32>;

// The first bytes of a connection, in both directions. No text, TLS, HTTP/2 or PyTorch TCPStore (0x00) begins so.
inline constexpr std::array<std::uint8_t, 8> kMark = {0x8E, 'e', 'l', 'a', 's', 't', 'i', 'c'};

// The version of the protocol. A newer minor version only adds what an older reader may ignore.
struct Version {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  bool operator==(const Version&) const = default;
  std::string text() const;  // "2.0"
  static void fields(auto& io, auto& v) { each(io, "major", v.major, "minor", v.minor); }
};
inline constexpr Version kOurVersion = {2, 0};

inline constexpr bool is_optional(FrameType type) { return static_cast<std::uint8_t>(type) >= kFirstOptional; }
bool is_agent_message(FrameType type);
bool is_coordinator_message(FrameType type);
FrameType type_of(const AgentMessage& message);
FrameType type_of(const CoordinatorMessage& message);
// The name in docs/agent-protocol.md: "HELLO", "NodeJoins"; for an unknown number "frame of the unknown type 99".
std::string name_of(FrameType type);

// The incarnation, term and round that each frame carries. 0: not known, or of no meaning for this frame.
struct Stamp {
  Incarnation incarnation = 0;
  Term term = 0;
  RoundNumber round = 0;
  bool operator==(const Stamp&) const = default;
};

// A frame whose fields are not decoded yet. Its bytes belong to the reader that returned it.
struct Frame {
  FrameType type{};
  Stamp stamp;
  Bytes fields;
  Bytes whole;  // with its length and header
};

// The session's own frames. The version is the first field of those that have one, and has no size before it.
struct Hello {
  static constexpr FrameType kType = FrameType::kHello;
  Version version;
  std::string job;
  AgentId agent = 0;
  Nonce nonce{};
  std::optional<Gossip> gossips = {};
  bool may_begin = true;
  static void fields(auto& io, auto& v) {
    Version::fields(io, v.version);
    io("job", v.job, bounds::kName);
    each(io, "agent", v.agent, "nonce", v.nonce, "announces", v.gossips, "may_begin", v.may_begin);
  }
};
struct Challenge {
  static constexpr FrameType kType = FrameType::kChallenge;
  Version version;
  Nonce nonce{};
  Proof proof{};
  static void fields(auto& io, auto& v) {
    Version::fields(io, v.version);
    each(io, "nonce", v.nonce, "proof", v.proof);
  }
};
struct ProofFrame {
  static constexpr FrameType kType = FrameType::kProof;
  Proof proof{};
  static void fields(auto& io, auto& v) { io("proof", v.proof); }
};
struct WelcomeFrame {
  static constexpr FrameType kType = FrameType::kWelcome;
  std::int64_t loss_timeout_ms = 0;
  std::optional<std::int64_t> good_for_ms = {};
  AgentId host = 0;
  static void fields(auto& io, auto& v) {
    each(io, "loss_timeout_ms", v.loss_timeout_ms, "good_for_ms", v.good_for_ms, "host", v.host);
  }
};
struct Refused {
  static constexpr FrameType kType = FrameType::kRefused;
  Version version;
  std::string reason;
  Redirect redirect = {};
  static void fields(auto& io, auto& v) {
    Version::fields(io, v.version);
    io("reason", v.reason, bounds::kName);
    io("elsewhere", v.redirect);
  }
};
struct KeepAliveFrame {
  static constexpr FrameType kType = FrameType::kKeepAlive;
  std::uint64_t number = 0;
  static void fields(auto& io, auto& v) { io("number", v.number); }
};
struct LeaseGrantFrame {
  static constexpr FrameType kType = FrameType::kLeaseGrant;
  std::uint64_t number = 0;
  std::optional<std::int64_t> good_for_ms = {};
  bool asks = false;
  static void fields(auto& io, auto& v) { each(io, "number", v.number, "good_for_ms", v.good_for_ms, "asks", v.asks); }
};
struct LeaseAckFrame {
  static constexpr FrameType kType = FrameType::kLeaseAck;
  std::uint64_t number = 0;
  std::optional<VoterState> voter_state = {};
  static void fields(auto& io, auto& v) { each(io, "number", v.number, "testimony", v.voter_state); }
};
struct NodeIsEmptyFrame {
  static constexpr FrameType kType = FrameType::kNodeIsEmpty;
  Version version;
  std::string job;
  AgentId agent = 0;
  Proof proof{};  // over all bytes before it
  static void fields(auto& io, auto& v) {
    Version::fields(io, v.version);
    io("job", v.job, bounds::kName);
    each(io, "agent", v.agent, "proof", v.proof);
  }
};

// Appends one of the session's own frames, or of the messages. The round of a message that has one replaces that of the
// stamp. Texts and lists above their limit are cut (texts between two characters), so that the receiver can always read
// them.
template <class Content>
void append_frame(ByteString& out, const Stamp& stamp, const Content& content);

// Decodes the fields of a frame of that type, of AgentMessage and CoordinatorMessage of any of their types. The error
// says what is wrong with them, as a clause. Bytes after the known fields are ignored. Fields that are missing at the
// end of a message or of a struct in it keep their initial values: an older minor version did not have them.
template <class T>
using Decoded = std::expected<T, std::string>;
template <class Content>
Decoded<Content> read_frame(const Frame& frame);

// The version in a HELLO, CHALLENGE, REFUSED or NODE_IS_EMPTY: it is their first field in every major version.
Decoded<Version> read_version(const Frame& frame);

// The bytes that the guardian's proof is over: the frame from its length up to `proof`, its last known field.
Bytes before_proof(const Frame& frame, const NodeIsEmptyFrame& empty);

}  // namespace elastic::protocol
