#include "rendezvous/protocol/codec.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <variant>

#include "rendezvous/protocol/binary_archive.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::protocol {
namespace {

// One of the session's own frames.
template <class Content>
struct Codec {
  static void append(ByteString& out, const Stamp& stamp, const Content& content) {
    const std::size_t start = out.size();
    BinaryWriter writer(out);
    writer.field(std::uint32_t{0});
    writer.field(static_cast<std::uint8_t>(Content::kType));
    writer.field(stamp.incarnation);
    writer.field(stamp.term);
    writer.field(stamp.round);
    Content::fields(writer, content);
    ELASTIC_CHECK(out.size() - start <= sizeof(std::uint32_t) + limits::kAgentFrameBytes);
    fill_in_size(out, start);
  }
  static Decoded<Content> read(const Frame& frame, BinaryReader::Ending ending = BinaryReader::Ending::kStrict) {
    Content content;
    BinaryReader reader(frame.fields, ending);
    Content::fields(reader, content);
    if (!reader.error().empty()) return std::unexpected(reader.error());
    return content;
  }
};

// "node-joins": "NodeJoins".
std::string in_camel_case(std::string_view name) {
  std::string out;
  for (const std::string& word : split(name, '-')) {
    out += static_cast<char>(word.front() - 'a' + 'A');
    out += word.substr(1);
  }
  return out;
}

// A variant of messages.
template <class Variant, class = typename Variant::variant>
struct MessagesOf;
template <class Variant, class... Messages>
struct MessagesOf<Variant, std::variant<Messages...>> {
  static constexpr std::array kTypes{Messages::kType...};
  static_assert(kTypes.size() == std::tuple_size_v<decltype(names_of(std::declval<const Variant&>()))>);

  static bool has(FrameType type) { return std::ranges::find(kTypes, type) != kTypes.end(); }
  // Empty: it is none of them.
  static std::string name(FrameType type) {
    const auto found = std::ranges::find(kTypes, type);
    return found == kTypes.end() ? ""
                                 : in_camel_case(names_of(Variant())[static_cast<std::size_t>(found - kTypes.begin())]);
  }

  static void append(ByteString& out, Stamp stamp, const Variant& variant) {
    std::visit(
        [&]<class Message>(const Message& message) {
          stamp.round = 0;
          if constexpr (requires { message.round; }) stamp.round = message.round;
          Codec<Message>::append(out, stamp, message);
        },
        variant);
  }
  static Decoded<Variant> read(const Frame& frame) {
    Decoded<Variant> result = std::unexpected(std::string("it is no such message"));
    static_cast<void>(((Messages::kType == frame.type && (read_one<Messages>(frame, result), true)) || ...));
    return result;
  }

 private:
  template <class Message>
  static void read_one(const Frame& frame, Decoded<Variant>& result) {
    auto message = Codec<Message>::read(frame, BinaryReader::Ending::kMayBeEarly);
    if (!message) {
      result = std::unexpected(std::move(message.error()));
      return;
    }
    if constexpr (requires { message->round; }) message->round = frame.stamp.round;
    result = *std::move(message);
  }
};
template <>
struct Codec<AgentMessage> : MessagesOf<AgentMessage> {};
template <>
struct Codec<CoordinatorMessage> : MessagesOf<CoordinatorMessage> {};

FrameType type_in(const auto& variant) {
  return std::visit([]<class Message>(const Message&) { return Message::kType; }, variant);
}

}  // namespace

std::string Version::text() const { return format("{}.{}", major, minor); }

bool is_agent_message(FrameType type) { return MessagesOf<AgentMessage>::has(type); }
bool is_coordinator_message(FrameType type) { return MessagesOf<CoordinatorMessage>::has(type); }
FrameType type_of(const AgentMessage& message) { return type_in(message); }
FrameType type_of(const CoordinatorMessage& message) { return type_in(message); }

std::string name_of(FrameType type) {
  switch (type) {
    case FrameType::kHello: return "HELLO";
    case FrameType::kChallenge: return "CHALLENGE";
    case FrameType::kProof: return "PROOF";
    case FrameType::kWelcome: return "WELCOME";
    case FrameType::kRefused: return "REFUSED";
    case FrameType::kKeepAlive: return "KEEP_ALIVE";
    case FrameType::kLeaseGrant: return "KEPT";
    case FrameType::kNodeIsEmpty: return "NODE_IS_EMPTY";
    case FrameType::kLeaseAck: return "HOLDS";
    default: break;
  }
  const std::string name = MessagesOf<AgentMessage>::name(type) + MessagesOf<CoordinatorMessage>::name(type);
  return name.empty() ? format("frame of the unknown type {}", static_cast<unsigned>(type)) : name;
}

template <class Content>
void append_frame(ByteString& out, const Stamp& stamp, const Content& content) {
  Codec<Content>::append(out, stamp, content);
}
template <class Content>
Decoded<Content> read_frame(const Frame& frame) {
  return Codec<Content>::read(frame);
}

#define ELASTIC_FRAME(Content)                                                    \
  template void append_frame<Content>(ByteString&, const Stamp&, const Content&); \
  template Decoded<Content> read_frame<Content>(const Frame&)
ELASTIC_FRAME(Hello);
ELASTIC_FRAME(Challenge);
ELASTIC_FRAME(ProofFrame);
ELASTIC_FRAME(WelcomeFrame);
ELASTIC_FRAME(Refused);
ELASTIC_FRAME(KeepAliveFrame);
ELASTIC_FRAME(LeaseGrantFrame);
ELASTIC_FRAME(LeaseAckFrame);
ELASTIC_FRAME(NodeIsEmptyFrame);
ELASTIC_FRAME(AgentMessage);
ELASTIC_FRAME(CoordinatorMessage);
#undef ELASTIC_FRAME

Decoded<Version> read_version(const Frame& frame) { return Codec<Version>::read(frame); }

Bytes before_proof(const Frame& frame, const NodeIsEmptyFrame& empty) {
  // The fields before the proof: version, length of the job's name, the name, agent.
  const std::size_t size = 4 + 4 + empty.job.size() + 8;
  return frame.whole.first(frame.whole.size() - frame.fields.size() + size);
}

}  // namespace elastic::protocol
