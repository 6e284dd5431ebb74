#include "rendezvous/protocol/codec.h"

#include <utility>
#include <variant>

#include "rendezvous/protocol/binary_archive.h"
#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::protocol {
namespace {

// Whether a frame type is that of one of a variant's messages, and that message.
template <class Variant, class = typename Variant::variant>
struct MessagesOf;
template <class Variant, class... Messages>
struct MessagesOf<Variant, std::variant<Messages...>> {
  static bool has(FrameType type) { return ((Messages::kType == type) || ...); }

  static Decoded<Variant> read(const Frame& frame) {
    Decoded<Variant> result = std::unexpected(std::string("it is no such message"));
    static_cast<void>(((Messages::kType == frame.type && (read_one<Messages>(frame, result), true)) || ...));
    return result;
  }

 private:
  template <class Message>
  static void read_one(const Frame& frame, Decoded<Variant>& result) {
    Message message;
    BinaryReader reader(frame.fields, BinaryReader::Ending::kMayBeEarly);
    Message::fields(reader, message);
    if constexpr (requires { message.round; }) message.round = frame.stamp.round;
    if (reader.error().empty()) {
      result = std::move(message);
    } else {
      result = std::unexpected(reader.error());
    }
  }
};

FrameType type_in(const auto& variant) {
  return std::visit([]<class Message>(const Message&) { return Message::kType; }, variant);
}

template <class T>
void append(ByteString& out, const Stamp& stamp, FrameType type, const T& content) {
  const std::size_t start = out.size();
  BinaryWriter writer(out);
  writer.field(std::uint32_t{0});
  writer.field(static_cast<std::uint8_t>(type));
  writer.field(stamp.incarnation);
  writer.field(stamp.term);
  writer.field(stamp.round);
  T::fields(writer, content);
  ELASTIC_CHECK(out.size() - start <= sizeof(std::uint32_t) + limits::kAgentFrameBytes);
  fill_in_size(out, start);
}

void append_message(ByteString& out, Stamp stamp, const auto& variant) {
  std::visit(
      [&]<class Message>(const Message& message) {
        stamp.round = 0;
        if constexpr (requires { message.round; }) stamp.round = message.round;
        append(out, stamp, Message::kType, message);
      },
      variant);
}

template <class T>
Decoded<T> read(const Frame& frame) {
  T content;
  BinaryReader reader(frame.fields, BinaryReader::Ending::kStrict);
  T::fields(reader, content);
  if (!reader.error().empty()) return std::unexpected(reader.error());
  return content;
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
    case FrameType::kKept: return "KEPT";
    case FrameType::kNodeIsEmpty: return "NODE_IS_EMPTY";
    case FrameType::kHolds: return "HOLDS";
    case FrameType::kNodeJoins: return "NodeJoins";
    case FrameType::kStoreIsOpen: return "StoreIsOpen";
    case FrameType::kWorkerFailed: return "WorkerFailed";
    case FrameType::kWorkersSucceeded: return "WorkersSucceeded";
    case FrameType::kNodeCannotRun: return "NodeCannotRun";
    case FrameType::kNodeStopped: return "NodeStopped";
    case FrameType::kNodeLeaves: return "NodeLeaves";
    case FrameType::kCheckDone: return "CheckDone";
    case FrameType::kVerdictHeard: return "VerdictHeard";
    case FrameType::kRoundHeard: return "RoundHeard";
    case FrameType::kNodeProgress: return "NodeProgress";
    case FrameType::kNodeStacks: return "NodeStacks";
    case FrameType::kStacksWanted: return "StacksWanted";
    case FrameType::kHangSigns: return "HangSigns";
    case FrameType::kNodeEvidence: return "NodeEvidence";
    case FrameType::kCollectEvidence: return "CollectEvidence";
    case FrameType::kHangTold: return "HangTold";
    case FrameType::kHangOver: return "HangOver";
    case FrameType::kKeepState: return "KeepState";
    case FrameType::kLoaderSays: return "LoaderSays";
    case FrameType::kLoaderTold: return "LoaderTold";
    case FrameType::kPrepareRound: return "PrepareRound";
    case FrameType::kRunWorkers: return "RunWorkers";
    case FrameType::kStopWorkers: return "StopWorkers";
    case FrameType::kEndJob: return "EndJob";
    case FrameType::kRunCheck: return "RunCheck";
    case FrameType::kDismiss: return "Dismiss";
    case FrameType::kRejected: return "Rejected";
    case FrameType::kAreYouThere: return "AreYouThere";
    case FrameType::kAwaiting: return "Awaiting";
    case FrameType::kLeaveJob: return "LeaveJob";
    case FrameType::kResigned: return "Resigned";
    case FrameType::kNextRound: return "NextRound";
  }
  return format("frame of the unknown type {}", static_cast<unsigned>(type));
}

void append_frame(ByteString& out, const Stamp& stamp, const Hello& hello) {
  append(out, stamp, FrameType::kHello, hello);
}
void append_frame(ByteString& out, const Stamp& stamp, const Challenge& challenge) {
  append(out, stamp, FrameType::kChallenge, challenge);
}
void append_frame(ByteString& out, const Stamp& stamp, const ProofFrame& proof) {
  append(out, stamp, FrameType::kProof, proof);
}
void append_frame(ByteString& out, const Stamp& stamp, const WelcomeFrame& welcome) {
  append(out, stamp, FrameType::kWelcome, welcome);
}
void append_frame(ByteString& out, const Stamp& stamp, const Refused& refused) {
  append(out, stamp, FrameType::kRefused, refused);
}
void append_frame(ByteString& out, const Stamp& stamp, const KeepAliveFrame& keep_alive) {
  append(out, stamp, FrameType::kKeepAlive, keep_alive);
}
void append_frame(ByteString& out, const Stamp& stamp, const KeptFrame& kept) {
  append(out, stamp, FrameType::kKept, kept);
}
void append_frame(ByteString& out, const Stamp& stamp, const HoldsFrame& holds) {
  append(out, stamp, FrameType::kHolds, holds);
}
void append_frame(ByteString& out, const Stamp& stamp, const NodeIsEmptyFrame& empty) {
  append(out, stamp, FrameType::kNodeIsEmpty, empty);
}
void append_frame(ByteString& out, const Stamp& stamp, const AgentMessage& message) {
  append_message(out, stamp, message);
}
void append_frame(ByteString& out, const Stamp& stamp, const CoordinatorMessage& message) {
  append_message(out, stamp, message);
}

Decoded<Hello> read_hello(const Frame& frame) { return read<Hello>(frame); }
Decoded<Challenge> read_challenge(const Frame& frame) { return read<Challenge>(frame); }
Decoded<ProofFrame> read_proof(const Frame& frame) { return read<ProofFrame>(frame); }
Decoded<WelcomeFrame> read_welcome(const Frame& frame) { return read<WelcomeFrame>(frame); }
Decoded<Refused> read_refused(const Frame& frame) { return read<Refused>(frame); }
Decoded<KeepAliveFrame> read_keep_alive(const Frame& frame) { return read<KeepAliveFrame>(frame); }
Decoded<KeptFrame> read_kept(const Frame& frame) { return read<KeptFrame>(frame); }
Decoded<HoldsFrame> read_holds(const Frame& frame) { return read<HoldsFrame>(frame); }
Decoded<NodeIsEmptyFrame> read_node_is_empty(const Frame& frame) { return read<NodeIsEmptyFrame>(frame); }
Decoded<Version> read_version(const Frame& frame) { return read<Version>(frame); }

Decoded<AgentMessage> read_agent_message(const Frame& frame) { return MessagesOf<AgentMessage>::read(frame); }
Decoded<CoordinatorMessage> read_coordinator_message(const Frame& frame) {
  return MessagesOf<CoordinatorMessage>::read(frame);
}

Bytes before_proof(const Frame& frame, const NodeIsEmptyFrame& empty) {
  // The fields before the proof: version, length of the job's name, the name, agent.
  const std::size_t size = 4 + 4 + empty.job.size() + 8;
  return frame.whole.first(frame.whole.size() - frame.fields.size() + size);
}

}  // namespace elastic::protocol
