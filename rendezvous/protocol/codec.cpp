#include "rendezvous/protocol/codec.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "src/base/check.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::protocol {
namespace {

constexpr std::size_t kLengthSize = 4;

template <std::unsigned_integral T>
T number_at(Bytes bytes) {
  T number = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) number = static_cast<T>(std::uint64_t{number} << 8 | bytes[i]);
  return number;
}

// The longest start of a text that has at most `limit` bytes and ends with a whole character.
std::string_view cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  std::size_t end = limit;
  while (end > 0 && limit - end < 3 && inside(end)) --end;
  return text.substr(0, inside(end) ? limit : end);
}

// --- Writer and reader. The functions fields() below describe each struct to both. -------------------

class Writer {
 public:
  explicit Writer(ByteString& out) : out_(out) {}

  template <std::unsigned_integral T>
  void operator()(const T& number) {
    for (std::size_t i = sizeof(T); i-- > 0;) {
      out_.push_back(static_cast<std::uint8_t>(std::uint64_t{number} >> (8 * i)));
    }
  }
  void operator()(const bool& value) { out_.push_back(value ? 1 : 0); }
  void added() {}
  template <std::signed_integral T>
  void operator()(const T& number) {
    (*this)(static_cast<std::make_unsigned_t<T>>(number));
  }
  template <std::size_t kSize>
  void operator()(const std::array<std::uint8_t, kSize>& bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  template <class T>
  requires std::is_class_v<T>
  void operator()(const T& part) { fields(*this, part); }
  void text(std::string_view text, std::size_t limit) {
    const std::string_view sent = cut(text, limit);
    (*this)(static_cast<std::uint32_t>(sent.size()));
    out_.insert(out_.end(), sent.begin(), sent.end());
  }
  template <class Enum>
  void choice(const Enum& value, Enum) {
    (*this)(static_cast<std::uint8_t>(value));
  }
  template <class T>
  void list(const std::vector<T>& items, std::size_t limit) {
    const std::size_t count = std::min(items.size(), limit);
    (*this)(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) (*this)(items[i]);
  }

 private:
  ByteString& out_;
};

// Whether fields may be missing at the end of a frame. Fields of a struct inside it may never be missing.
enum class Ending : std::uint8_t { kStrict, kMayBeEarly };

class Reader {
 public:
  Reader(Bytes bytes, Ending ending) : left_(bytes), depth_(ending == Ending::kStrict ? 1 : 0) {}

  // What is wrong, as a clause; empty if nothing is.
  const std::string& error() const { return error_; }

  // In a session's own frame: the fields that follow were added by a later minor version, and may be missing.
  void added() { depth_ = 0; }

  template <std::unsigned_integral T>
  void operator()(T& number) {
    if (begin_field() && has(sizeof(T))) number = number_at<T>(take(sizeof(T)));
  }
  void operator()(bool& value) {
    std::uint8_t byte = value;
    (*this)(byte);
    if (byte > 1) fail(format("a boolean has the value {}", byte));
    value = byte == 1;
  }
  template <std::signed_integral T>
  void operator()(T& number) {
    auto bits = static_cast<std::make_unsigned_t<T>>(number);
    (*this)(bits);
    number = static_cast<T>(bits);
  }
  template <std::size_t kSize>
  void operator()(std::array<std::uint8_t, kSize>& bytes) {
    if (begin_field() && has(kSize)) std::ranges::copy(take(kSize), bytes.begin());
  }
  template <class T>
  void operator()(std::optional<T>& value) {
    if (!begin_field()) return;
    ++depth_;
    bool there = false;
    (*this)(there);
    if (there) (*this)(value.emplace());
    --depth_;
  }
  template <class T>
  requires std::is_class_v<T>
  void operator()(T& part) {
    if (!begin_field()) return;
    ++depth_;
    fields(*this, part);
    --depth_;
  }
  void text(std::string& text, std::size_t limit) {
    std::uint32_t size = 0;
    if (!begin_field() || !take_count(size, limit, "text", "bytes")) return;
    if (!has(size)) return;
    const Bytes bytes = take(size);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class Enum>
  void choice(Enum& value, Enum last) {
    auto number = static_cast<std::uint8_t>(value);
    (*this)(number);
    if (number > static_cast<std::uint8_t>(last)) return fail(format("an enumeration has the value {}", number));
    value = static_cast<Enum>(number);
  }
  template <class T>
  void list(std::vector<T>& items, std::size_t limit) {
    std::uint32_t count = 0;
    if (!begin_field() || !take_count(count, limit, "list", "items")) return;
    ++depth_;
    for (; count > 0 && error_.empty(); --count) (*this)(items.emplace_back());
    --depth_;
  }

 private:
  bool begin_field() const { return error_.empty() && (depth_ > 0 || !left_.empty()); }
  bool has(std::size_t size) {
    if (left_.size() < size) fail("it ends in the middle of a field");
    return left_.size() >= size;
  }
  Bytes take(std::size_t size) {
    const Bytes bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }
  bool take_count(std::uint32_t& count, std::size_t limit, std::string_view what, std::string_view unit) {
    if (!has(sizeof count)) return false;
    count = number_at<std::uint32_t>(take(sizeof count));
    if (count > limit) fail(format("a {} of {} {}; at most {} are allowed", what, count, unit, limit));
    return count <= limit;
  }
  void fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }

  Bytes left_;
  int depth_;  // how many structs, optionals and lists enclose the present field
  std::string error_;
};

// --- The fields of each frame. Fields that a later minor version adds to a message come at its end. ---

template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

void fields(auto& io, Is<Version> auto& version) {
  io(version.major);
  io(version.minor);
}
void fields(auto& io, Is<Hello> auto& hello) {
  io(hello.version);
  io.text(hello.job, limits::kAgentNameBytes);
  io(hello.agent);
  io(hello.nonce);
}
void fields(auto& io, Is<Challenge> auto& challenge) {
  io(challenge.version);
  io(challenge.nonce);
  io(challenge.proof);
}
void fields(auto& io, Is<ProofFrame> auto& proof) { io(proof.proof); }
void fields(auto& io, Is<WelcomeFrame> auto& welcome) {
  io(welcome.loss_timeout_ms);
  io.added();
  io(welcome.good_for_ms);
}
void fields(auto& io, Is<Refused> auto& refused) {
  io(refused.version);
  io.text(refused.reason, limits::kAgentNameBytes);
}
void fields(auto& io, Is<KeepAliveFrame> auto& keep_alive) { io(keep_alive.number); }
void fields(auto& io, Is<KeptFrame> auto& kept) {
  io(kept.number);
  io.added();
  io(kept.good_for_ms);
}
void fields(auto& io, Is<NodeIsEmptyFrame> auto& empty) {
  io(empty.version);
  io.text(empty.job, limits::kAgentNameBytes);
  io(empty.agent);
  io(empty.proof);
}

void fields(auto& io, Is<StoreEndpoint> auto& endpoint) {
  io.text(endpoint.address, limits::kAgentNameBytes);
  io(endpoint.port);
}
void fields(auto& io, Is<ExitStatus> auto& exit) {
  io(exit.code);
  io(exit.signal);
  io(exit.core_dumped);
}
void fields(auto& io, Is<WorkerFailure> auto& failure) {
  io(failure.rank);
  io(failure.local_rank);
  io(failure.node_rank);
  io(failure.pid);
  io(failure.exit);
  io(failure.wall_ms);
  io(failure.stopped_by_us);
  io.choice(failure.kind, FailureKind::kCommunication);
  io.text(failure.host, limits::kAgentNameBytes);
}
void fields(auto& io, Is<Crash> auto& crash) {
  io.choice(crash.kind, Crash::Kind::kMissingFile);
  io(crash.digest);
}
void fields(auto& io, Is<NodePlace> auto& place) {
  io(place.node_rank);
  io(place.node_count);
  io(place.base_rank);
  io(place.world_size);
  io(place.base_role_rank);
  io(place.role_world_size);
}
void fields(auto& io, Is<Verdict> auto& verdict) {
  io.choice(verdict.outcome, Outcome::kStopped);
  io.text(verdict.reason, limits::kAgentTextBytes);
  io(verdict.round);
  io(verdict.restarts_used);
  io(verdict.signal);
  io.list(verdict.failures, limits::kAgentFailures);
  io.text(verdict.left_behind, limits::kAgentTextBytes);
}
void fields(auto& io, Is<JobTerms> auto& terms) {
  io(terms.min_nodes);
  io(terms.max_nodes);
  io(terms.node_unit);
  io(terms.max_restarts);
}
void fields(auto& io, Is<JobRules> auto& rules) {
  io(rules.last_call_ms);
  io(rules.join_timeout_ms);
  io(rules.replacement_grace_ms);
  io.choice(rules.scale_up, JobRules::ScaleUp::kNever);
  io(rules.scale_up_after_ms);
  io(rules.node_losses);
  io(rules.loss_window_ms);
  io(rules.keep_out_ms);
  io(rules.job_losses);
}
void fields(auto& io, Is<CheckRules> auto& rules) {
  io.choice(rules.when, CheckRules::When::kAlways);
  io(rules.excludes_stragglers);
  io(rules.only);
  io(rules.measures_all);
}
void fields(auto& io, Is<AgentFacts> auto& facts) {
  io(facts.incarnation);
  io(facts.term);
  io(facts.round);
  io.choice(facts.activity, AgentFacts::Activity::kStopping);
  io(facts.place);
  io(facts.restart_count);
  io(facts.losses);
  io(facts.membership);
  io.list(facts.failures, limits::kAgentFailures);
  io(facts.verdict);
}

// A message's `round` is in the header.
void fields(auto& io, Is<NodeJoins> auto& message) {
  io(message.local_world_size);
  io.text(message.role, limits::kAgentNameBytes);
  io(message.agent);
  io.text(message.address, limits::kAgentNameBytes);
  io(message.node_rank);
  io(message.hosts_coordinator);
  io(message.terms);
  io(message.rules);
  io(message.facts);
  io.text(message.addresses, limits::kAgentAddressesBytes);
  io(message.check);
  io(message.session);
  io.text(message.group, limits::kAgentNameBytes);
  io(message.rules.replacement_wait_ms);
  io.choice(message.rules.crash_loop, JobRules::CrashLoop::kRestart);
  if (message.facts.verdict) io(message.facts.verdict->is_deterministic);
}
void fields(auto& io, Is<StoreIsOpen> auto& message) { io(message.endpoint); }
void fields(auto& io, Is<WorkerFailed> auto& message) { io(message.failure); }
void fields(auto&, Is<WorkersSucceeded> auto&) {}
void fields(auto& io, Is<NodeCannotRun> auto& message) { io.text(message.reason, limits::kAgentTextBytes); }
void fields(auto& io, Is<NodeStopped> auto& message) {
  io.list(message.failures, limits::kAgentFailures);
  io(message.crash);
}
void fields(auto& io, Is<NodeLeaves> auto& message) { io(message.signal); }
void fields(auto& io, Is<CheckDone> auto& message) {
  io(message.phase);
  io.text(message.result, limits::kAgentCheckBytes);
}
void fields(auto& io, Is<VerdictHeard> auto& message) { io.text(message.details, limits::kAgentDetailsBytes); }

void fields(auto& io, Is<PrepareRound> auto& message) {
  io(message.restart_count);
  io(message.max_restarts);
  io(message.place);
  io.text(message.reason, limits::kAgentTextBytes);
  io(message.losses);
  io(message.membership);
  io(message.charged);
  io.text(message.admits, limits::kAgentAdmittedBytes);
}
void fields(auto& io, Is<RunWorkers> auto& message) { io(message.store); }
void fields(auto& io, Is<StopWorkers> auto& message) { io.choice(message.scope, RestartScope::kJob); }
void fields(auto& io, Is<EndJob> auto& message) {
  io(message.verdict);
  io(message.verdict.is_deterministic);
}
void fields(auto& io, Is<RunCheck> auto& message) {
  io(message.phase);
  io.text(message.order, limits::kAgentCheckBytes);
}
void fields(auto& io, Is<Dismiss> auto& message) { io.text(message.details, limits::kAgentDetailsBytes); }
void fields(auto& io, Is<Rejected> auto& message) {
  io.choice(message.why, Rejected::Why::kTooMany);
  io.text(message.reason, limits::kAgentTextBytes);
  io(message.retry_ms);
}
void fields(auto&, Is<AreYouThere> auto&) {}
void fields(auto& io, Is<Awaiting> auto& message) {
  io(message.here);
  io(message.least);
  io(message.most);
  io(message.for_ms);
  io(message.left_ms);
  io.text(message.what, limits::kAgentTextBytes);
  io.text(message.because, limits::kAgentTextBytes);
  io(message.because_ms);
}

// --- The frame type of each message. -------------------------------------------------------------------

template <class Message>
constexpr FrameType kTypeOf{};
template <>
constexpr FrameType kTypeOf<NodeJoins> = FrameType::kNodeJoins;
template <>
constexpr FrameType kTypeOf<StoreIsOpen> = FrameType::kStoreIsOpen;
template <>
constexpr FrameType kTypeOf<WorkerFailed> = FrameType::kWorkerFailed;
template <>
constexpr FrameType kTypeOf<WorkersSucceeded> = FrameType::kWorkersSucceeded;
template <>
constexpr FrameType kTypeOf<NodeCannotRun> = FrameType::kNodeCannotRun;
template <>
constexpr FrameType kTypeOf<NodeStopped> = FrameType::kNodeStopped;
template <>
constexpr FrameType kTypeOf<NodeLeaves> = FrameType::kNodeLeaves;
template <>
constexpr FrameType kTypeOf<CheckDone> = FrameType::kCheckDone;
template <>
constexpr FrameType kTypeOf<VerdictHeard> = FrameType::kVerdictHeard;
template <>
constexpr FrameType kTypeOf<PrepareRound> = FrameType::kPrepareRound;
template <>
constexpr FrameType kTypeOf<RunWorkers> = FrameType::kRunWorkers;
template <>
constexpr FrameType kTypeOf<StopWorkers> = FrameType::kStopWorkers;
template <>
constexpr FrameType kTypeOf<EndJob> = FrameType::kEndJob;
template <>
constexpr FrameType kTypeOf<RunCheck> = FrameType::kRunCheck;
template <>
constexpr FrameType kTypeOf<Dismiss> = FrameType::kDismiss;
template <>
constexpr FrameType kTypeOf<Rejected> = FrameType::kRejected;
template <>
constexpr FrameType kTypeOf<AreYouThere> = FrameType::kAreYouThere;
template <>
constexpr FrameType kTypeOf<Awaiting> = FrameType::kAwaiting;

// Whether a frame type is that of one of a variant's messages, and that message.
template <class Variant>
struct MessagesOf;
template <class... Messages>
struct MessagesOf<std::variant<Messages...>> {
  static_assert(((kTypeOf<Messages> != FrameType{}) && ...), "each message has a type");

  static bool has(FrameType type) { return ((kTypeOf<Messages> == type) || ...); }

  static Decoded<std::variant<Messages...>> read(const Frame& frame) {
    Decoded<std::variant<Messages...>> result = std::unexpected(std::string("it is no such message"));
    static_cast<void>(((kTypeOf<Messages> == frame.type && (read_one<Messages>(frame, result), true)) || ...));
    return result;
  }

 private:
  template <class Message>
  static void read_one(const Frame& frame, Decoded<std::variant<Messages...>>& result) {
    Message message;
    Reader reader(frame.fields, Ending::kMayBeEarly);
    fields(reader, message);
    if constexpr (requires { message.round; }) message.round = frame.stamp.round;
    if (reader.error().empty()) {
      result = std::move(message);
    } else {
      result = std::unexpected(reader.error());
    }
  }
};

FrameType type_in(const auto& variant) {
  return std::visit([]<class Message>(const Message&) { return kTypeOf<Message>; }, variant);
}

// --- Frames. -------------------------------------------------------------------------------------------

template <class T>
void append(ByteString& out, const Stamp& stamp, FrameType type, const T& content) {
  const std::size_t start = out.size();
  Writer writer(out);
  writer(std::uint32_t{0});
  writer(static_cast<std::uint8_t>(type));
  writer(stamp.incarnation);
  writer(stamp.term);
  writer(stamp.round);
  fields(writer, content);
  const std::size_t length = out.size() - start - kLengthSize;
  ELASTIC_CHECK(length <= limits::kAgentFrameBytes);
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    out[start + i] = static_cast<std::uint8_t>(length >> (8 * (kLengthSize - 1 - i)));
  }
}

void append_message(ByteString& out, Stamp stamp, const auto& variant) {
  std::visit(
      [&]<class Message>(const Message& message) {
        stamp.round = 0;
        if constexpr (requires { message.round; }) stamp.round = message.round;
        append(out, stamp, kTypeOf<Message>, message);
      },
      variant);
}

template <class T>
Decoded<T> read(const Frame& frame) {
  T content;
  Reader reader(frame.fields, Ending::kStrict);
  fields(reader, content);
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
    case FrameType::kNodeJoins: return "NodeJoins";
    case FrameType::kStoreIsOpen: return "StoreIsOpen";
    case FrameType::kWorkerFailed: return "WorkerFailed";
    case FrameType::kWorkersSucceeded: return "WorkersSucceeded";
    case FrameType::kNodeCannotRun: return "NodeCannotRun";
    case FrameType::kNodeStopped: return "NodeStopped";
    case FrameType::kNodeLeaves: return "NodeLeaves";
    case FrameType::kCheckDone: return "CheckDone";
    case FrameType::kVerdictHeard: return "VerdictHeard";
    case FrameType::kPrepareRound: return "PrepareRound";
    case FrameType::kRunWorkers: return "RunWorkers";
    case FrameType::kStopWorkers: return "StopWorkers";
    case FrameType::kEndJob: return "EndJob";
    case FrameType::kRunCheck: return "RunCheck";
    case FrameType::kDismiss: return "Dismiss";
    case FrameType::kRejected: return "Rejected";
    case FrameType::kAreYouThere: return "AreYouThere";
    case FrameType::kAwaiting: return "Awaiting";
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
