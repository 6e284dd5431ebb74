// libFuzzer's entry for the agent protocol: the input is a story of both ends (protocol_events.h), with
// messages, orders, bytes that are changed, forged or held back. Nothing may crash, and:
// - where the secrets or the major versions differ, nobody is introduced or welcomed, whatever is forged;
// - whom the coordinator takes for introduced is who the agent is;
// - where nothing was tampered with, every message arrives as it was sent, in order, or is named as stale;
// - each end does the same when its bytes come one by one, in a time in proportion to them;
// - a reader holds no more memory than has come, about.
// ELASTIC_FUZZ_TRACE=1 in the environment tells each step on stderr.

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/protocol/limits.h"
#include "rendezvous/protocol/session.h"
#include "rendezvous/protocol/test_messages.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/protocol_events.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace elastic {
namespace {

using namespace protocol;
using namespace protocol_events;
using fuzz::cpu_seconds;

constexpr int kMostEvents = 400;
constexpr std::size_t kMostBytes = 4 << 20;
// CPU time of reading byte by byte, a hundred times what it takes with sanitizers.
constexpr double kSecondsPerByte = 20e-6;
constexpr double kSecondsForAny = 0.5;

void trace(const std::string& line) {
  if (fuzz::tracing()) std::fprintf(stderr, "%s\n", line.c_str());
}
[[noreturn]] void found(const std::string& what) { fuzz::end_with("protocol_fuzzer", what); }

Nonce nonce_of(std::uint8_t byte) {
  Nonce nonce{};
  nonce.fill(byte);
  return nonce;
}

template <class Message>
std::string encoded(const Message& message) {
  ByteString bytes;
  append_frame(bytes, {}, message);
  return {bytes.begin(), bytes.end()};
}

// An event as text: equal texts, equal events.
std::string told(const SessionError& error) {
  if (error.text.empty()) found("an error has no text");
  // What is said of a stranger quotes what has come so far.
  const bool quotes = error.kind == SessionError::Kind::kNotOurs;
  return format("error {}: {}", static_cast<int>(error.kind), quotes ? "" : error.text);
}
std::string told(const AgentSession::Event& event) {
  if (const auto* welcomed = std::get_if<AgentSession::Welcomed>(&event)) {
    return format("welcomed {} {}", welcomed->welcome.term, welcomed->welcome.incarnation);
  }
  if (const auto* kept = std::get_if<AgentSession::LeaseGrant>(&event))
    return format("kept {} {}", kept->sent_ms, kept->asks);
  if (const auto* got = std::get_if<AgentSession::Received>(&event)) return "received " + encoded(got->message);
  if (const auto* stale = std::get_if<AgentSession::Stale>(&event)) return "stale " + stale->text;
  return told(std::get<SessionError>(event));
}
std::string told(const CoordinatorSession::Event& event) {
  if (const auto* introduced = std::get_if<CoordinatorSession::Introduced>(&event)) {
    const Introduction& who = introduced->introduction;
    return format("introduced {} {} {} {}", who.job, who.agent, who.incarnation, who.term);
  }
  if (const auto* got = std::get_if<CoordinatorSession::Received>(&event)) return "received " + encoded(got->message);
  if (const auto* alive = std::get_if<CoordinatorSession::KeepAlive>(&event)) return format("alive {}", alive->number);
  if (const auto* holds = std::get_if<CoordinatorSession::LeaseAck>(&event)) {
    return format("holds {}, {} rounds", holds->number,
                  holds->voter_state ? static_cast<int>(holds->voter_state->rounds.size()) : -1);
  }
  if (const auto* empty = std::get_if<CoordinatorSession::NodeIsEmpty>(&event)) {
    return format("empty {} {} {} {}", empty->job, empty->agent, empty->incarnation, empty->round);
  }
  if (const auto* stale = std::get_if<CoordinatorSession::Stale>(&event)) return "stale " + stale->text;
  return told(std::get<SessionError>(event));
}

// One end, what is on its way to it, and a log of all that was done with it.
template <class Session>
struct End {
  using Event = typename Session::Event;
  struct Step {
    ByteString received;  // or, where there is an action:
    std::function<void(Session&, ByteString&)> action;
  };

  explicit End(std::function<Session()> make) : make_new(std::move(make)), session(make_new()) {}

  void act(std::function<void(Session&, ByteString&)> action, ByteString& out) {
    const std::size_t start = out.size();
    action(session, out);
    said.insert(said.end(), out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
    steps.push_back({{}, std::move(action)});
  }
  std::vector<Event> receive(std::size_t size, ByteString& out) {
    size = std::min(size, coming.size());
    // Memory of its own: what is read beyond the piece is seen.
    ByteString piece(coming.begin(), coming.begin() + static_cast<std::ptrdiff_t>(size));
    coming.erase(coming.begin(), coming.begin() + static_cast<std::ptrdiff_t>(size));
    const std::size_t start = out.size();
    std::vector<Event> events = session.receive(piece, out);
    said.insert(said.end(), out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
    for (const Event& event : events) heard.push_back(told(event));
    check_memory(piece);
    steps.push_back({std::move(piece), {}});
    return events;
  }
  // What a reader of our own holds of the same bytes.
  void check_memory(Bytes piece) {
    if (shadow_is_done) return;
    since_frame += piece.size();
    FrameReader::Step step{};
    while ((step = shadow.next(piece, limits::kAgentFrameBytes)) == FrameReader::Step::kFrame) {
      since_frame = piece.size();
    }
    shadow_is_done = step != FrameReader::Step::kNeedMore;
    if (shadow.held_bytes() > 2 * since_frame + 1024) {
      found(format("a reader holds {} bytes, with {} of an unfinished frame", shadow.held_bytes(), since_frame));
    }
  }
  // The same again, byte by byte.
  void check_cuts(const char* name) const {
    Session again = make_new();
    std::vector<std::string> heard_again;
    ByteString said_again;
    std::size_t bytes = 0;
    const double begin = cpu_seconds();
    for (const Step& step : steps) {
      if (step.action) step.action(again, said_again);
      for (const std::uint8_t& byte : step.received) {
        for (const Event& event : again.receive(Bytes(&byte, 1), said_again)) heard_again.push_back(told(event));
      }
      bytes += step.received.size();
    }
    const double seconds = cpu_seconds() - begin;
    if (heard_again != heard) found(format("the {} hears something else byte by byte", name));
    if (said_again != said) found(format("the {} says something else byte by byte", name));
    if (seconds > kSecondsForAny + kSecondsPerByte * static_cast<double>(bytes)) {
      found(format("the {} took {} s for {} bytes", name, seconds, bytes));
    }
  }

  std::function<Session()> make_new;
  Session session;
  ByteString coming;
  bool is_tampered = false;  // what is coming, or came
  std::vector<Step> steps;
  std::vector<std::string> heard;
  ByteString said;
  FrameReader shadow;
  std::size_t since_frame = 0;
  bool shadow_is_done = false;
};

// Which messages have been sent and are still to arrive, in order; those that are stale are named instead.
class Ledger {
 public:
  void sent(std::string message) { open_.push_back(std::move(message)); }
  void stale() { ++stale_; }
  void arrived(const std::string& message) {
    for (; !open_.empty() && open_.front() != message; open_.pop_front()) ++passed_;
    if (open_.empty()) found("a message arrived that was not sent, or not in this order");
    open_.pop_front();
  }
  // At the end, when all has been delivered and no session was ended.
  void close(const char* direction) const {
    const std::size_t missing = passed_ + open_.size();
    if (missing == stale_) return;
    found(format("{}: {} messages did not arrive, {} were named as stale", direction, missing, stale_));
  }

 private:
  std::deque<std::string> open_;
  std::size_t passed_ = 0, stale_ = 0;
};

class Story {
 public:
  explicit Story(Reader events)
      : events_(events),
        settings_(events_.byte()),
        introduction_(introduction_of(settings_)),
        agent_([introduction = introduction_, settings = settings_] {
          const Version version = {static_cast<std::uint16_t>(settings & kOtherMajor ? 1 : kOurVersion.major),
                                   static_cast<std::uint16_t>(settings & kNewerMinor ? 9 : kOurVersion.minor)};
          return AgentSession(introduction, settings & kNoSecret ? "" : "secret", nonce_of(1), version);
        }),
        coordinator_([settings = settings_] {
          return CoordinatorSession(settings & kOtherSecret ? "other"
                                    : settings & kNoSecret  ? ""
                                                            : "secret",
                                    nonce_of(2));
        }) {
    agent_.act(
        [](AgentSession& session, ByteString& out) {
          const ByteString first = session.begin();
          out.insert(out.end(), first.begin(), first.end());
        },
        coordinator_.coming);
  }

  void play() {
    for (int i = 0; i < kMostEvents && !events_.at_end() && bytes_ < kMostBytes; ++i) happen(events_.byte());
    for (int i = 0; i < 6; ++i) {
      deliver_to_coordinator(SIZE_MAX);
      deliver_to_agent(SIZE_MAX);
    }
    const bool is_honest = !agent_.is_tampered && !coordinator_.is_tampered;
    if (is_honest && is_welcomed_ && !has_ended_) {
      to_coordinator_.close("to the coordinator");
      to_agent_.close("to the agent");
    }
    agent_.check_cuts("agent");
    coordinator_.check_cuts("coordinator");
  }

 private:
  static Introduction introduction_of(std::uint8_t settings) {
    if (settings & kKnowsJob) return {"job", 7, 11, 3};
    return {"another job", 8, 0, 0};
  }
  bool may_trust() const { return (settings_ & (kOtherSecret | kOtherMajor)) == 0; }

  void happen(std::uint8_t kind) {
    switch (kind % kKinds) {
      case kAgentSays: return agent_says();
      case kCoordinatorSays: return coordinator_says();
      case kKeepAlive:
        return agent_.act([now = ++now_ms_](AgentSession& session, ByteString& out) { session.keep_alive(now, out); },
                          coordinator_.coming);
      case kLeaseGrant:
        return coordinator_.act(
            [number = events_.number()](CoordinatorSession& session, ByteString& out) {
              session.grant_lease(number, {}, number % 2 == 0, out);
            },
            agent_.coming);
      case kLeaseAck:
        return agent_.act(
            [number = events_.number(), voter_state = test::Maker(events_).part<std::optional<VoterState>>()](
                AgentSession& session, ByteString& out) { session.acknowledge_lease(number, voter_state, out); },
            coordinator_.coming);
      case kWelcome: return welcome();
      case kSetStamp: return set_stamp();
      case kRefuse:
        has_ended_ = true;
        return coordinator_.act([](CoordinatorSession& session, ByteString& out) { session.refuse("no", out); },
                                agent_.coming);
      case kToCoordinator: return deliver_to_coordinator(amount());
      case kToAgent: return deliver_to_agent(amount());
      case kForgeToCoordinator: return forge(coordinator_);
      case kForgeToAgent: return forge(agent_);
      case kRawToCoordinator: return raw(coordinator_);
      case kRawToAgent: return raw(agent_);
      case kPatchToCoordinator: return patch(coordinator_);
      case kPatchToAgent: return patch(agent_);
      case kGuardian: return guardian();
      default: return;
    }
  }

  std::size_t amount() {
    const std::uint8_t amount = events_.byte();
    return amount == 0 ? SIZE_MAX : amount;
  }

  void agent_says() {
    const std::uint8_t which = events_.byte();
    const auto message = test::Maker(events_).message<AgentMessage>(has_joined_ ? which : 0);
    has_joined_ = true;
    to_coordinator_.sent(encoded(message));
    const std::size_t before = coordinator_.coming.size();
    agent_.act([message](AgentSession& session, ByteString& out) { session.send(message, out); }, coordinator_.coming);
    bytes_ += coordinator_.coming.size() - before;
    trace("agent says " + name_of(type_of(message)));
  }

  // Only what its contract allows, before and after the welcome.
  void coordinator_says() {
    const std::uint8_t which = events_.byte();
    if (!is_introduced_) return;
    constexpr std::uint8_t kRejectedIndex = 6;
    const auto message = test::Maker(events_).message<CoordinatorMessage>(has_welcomed_ ? which : kRejectedIndex);
    to_agent_.sent(encoded(message));
    const std::size_t before = agent_.coming.size();
    coordinator_.act([message](CoordinatorSession& session, ByteString& out) { session.send(message, out); },
                     agent_.coming);
    bytes_ += agent_.coming.size() - before;
    trace("coordinator says " + name_of(type_of(message)));
  }

  void welcome() {
    const Welcome welcome = {events_.byte() % 8u, events_.byte() % 4u + 10u, 5000};
    if (!is_introduced_ || has_welcomed_) return;
    has_welcomed_ = true;
    coordinator_.act([welcome](CoordinatorSession& session, ByteString& out) { session.welcome(welcome, out); },
                     agent_.coming);
    trace(format("coordinator welcomes with term {}, incarnation {}", welcome.term, welcome.incarnation));
  }

  void set_stamp() {
    const Term term = events_.byte() % 8u;
    const Incarnation incarnation = events_.byte() % 4u + 10u;
    coordinator_.act(
        [term, incarnation](CoordinatorSession& session, ByteString&) { session.set_stamp(term, incarnation); },
        agent_.coming);
    trace(format("coordinator is at term {}, incarnation {}", term, incarnation));
  }

  void deliver_to_coordinator(std::size_t size) {
    for (const CoordinatorSession::Event& event : coordinator_.receive(size, agent_.coming)) {
      trace("coordinator hears: " + printable(told(event)));
      heard(event);
    }
  }
  void deliver_to_agent(std::size_t size) {
    for (const AgentSession::Event& event : agent_.receive(size, coordinator_.coming)) {
      trace("agent hears: " + printable(told(event)));
      heard(event);
    }
  }

  void heard(const CoordinatorSession::Event& event) {
    const bool is_empty = std::holds_alternative<CoordinatorSession::NodeIsEmpty>(event);
    if (is_empty) found("a forged word of a guardian is believed");
    const auto* introduced = std::get_if<CoordinatorSession::Introduced>(&event);
    if (introduced != nullptr) {
      if (!may_trust()) found("an agent is introduced that does not know the secret");
      if (introduced->introduction != introduction_) found("an agent is taken for another one");
      is_introduced_ = true;
    }
    if (!is_introduced_ && !std::holds_alternative<SessionError>(event)) found("a stranger is heard");
    const auto* got = std::get_if<CoordinatorSession::Received>(&event);
    if (got != nullptr) check_again(got->message);
    if (coordinator_.is_tampered || agent_.is_tampered) return;
    if (got != nullptr) to_coordinator_.arrived(encoded(got->message));
    const auto* stale = std::get_if<CoordinatorSession::Stale>(&event);
    if (stale != nullptr && stale->text.find("HOLDS") == std::string::npos) to_coordinator_.stale();
    if (const auto* error = std::get_if<SessionError>(&event)) judge(*error);
  }

  void heard(const AgentSession::Event& event) {
    if (!may_trust() && !std::holds_alternative<SessionError>(event)) found("an agent trusts a stranger");
    if (std::holds_alternative<AgentSession::Welcomed>(event)) is_welcomed_ = true;
    if (const auto* got = std::get_if<AgentSession::Received>(&event)) check_again(got->message);
    if (coordinator_.is_tampered || agent_.is_tampered) return;
    if (const auto* got = std::get_if<AgentSession::Received>(&event)) to_agent_.arrived(encoded(got->message));
    if (const auto* stale = std::get_if<AgentSession::Stale>(&event)) {
      const bool is_ours = stale->text.find(" of this node, ") != std::string::npos;
      const bool is_keep_alive = stale->text.find("KEPT") != std::string::npos || stale->text.starts_with("the answer");
      if (is_ours) to_coordinator_.stale();
      if (!is_ours && !is_keep_alive) to_agent_.stale();
    }
    if (const auto* error = std::get_if<SessionError>(&event)) judge(*error);
  }

  // Of what nobody tampered with.
  void judge(const SessionError& error) {
    using Kind = SessionError::Kind;
    has_ended_ = true;
    const bool may_be = error.kind == Kind::kRefused || error.kind == Kind::kOlderTerm ||
                        (error.kind == Kind::kVersion && (settings_ & kOtherMajor)) ||
                        (error.kind == Kind::kSecret && (settings_ & kOtherSecret)) ||
                        (error.kind == Kind::kOutOfOrder && error.text.find("keep-alive") != std::string::npos);
    if (!may_be) found("an honest conversation ends: " + error.text);
  }

  template <class Message>
  static void check_again(const Message& message) {
    const std::string bytes = encoded(message);
    FrameReader reader;
    Bytes mark(kMark), left(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    reader.next(mark, SIZE_MAX);
    if (reader.next(left, limits::kAgentFrameBytes) != FrameReader::Step::kFrame || !left.empty()) {
      found("what was read is not written as one frame");
    }
    if constexpr (std::is_same_v<Message, AgentMessage>) {
      if (read_frame<AgentMessage>(reader.frame()) != message) found("what was read is written as something else");
    } else {
      if (read_frame<CoordinatorMessage>(reader.frame()) != message)
        found("what was read is written as something else");
    }
  }

  template <class Session>
  void forge(End<Session>& end) {
    const std::uint8_t type = events_.byte();
    const Stamp stamp = {events_.byte(), events_.byte(), events_.byte()};
    const std::string_view fields = events_.bytes(events_.byte());
    end.is_tampered = true;
    const auto put = [&](std::uint64_t number, int size) {
      for (int i = size; i-- > 0;) end.coming.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
    };
    put(17 + fields.size(), 4);
    put(type, 1);
    put(stamp.incarnation, 8);
    put(stamp.term, 4);
    put(stamp.round, 4);
    end.coming.insert(end.coming.end(), fields.begin(), fields.end());
    trace("forged: " + name_of(static_cast<FrameType>(type)));
  }
  template <class Session>
  void raw(End<Session>& end) {
    const std::string_view bytes = events_.bytes(events_.byte());
    end.is_tampered = true;
    end.coming.insert(end.coming.end(), bytes.begin(), bytes.end());
    trace("raw bytes: " + printable(bytes));
  }
  template <class Session>
  void patch(End<Session>& end) {
    const std::size_t place = events_.byte() * 4u;
    const std::uint8_t change = events_.byte();
    const std::uint8_t offset = events_.byte() % 4;
    if (end.coming.empty() || change == 0) return;
    end.is_tampered = true;
    end.coming[(place + offset) % end.coming.size()] ^= change;
    trace("a byte is changed");
  }

  // A guardian's word, with a byte changed or not.
  void guardian() {
    const std::size_t place = events_.byte();
    const std::uint8_t change = events_.byte();
    ByteString frame = node_is_empty_frame(introduction_, 5, settings_ & kNoSecret ? "" : "secret");
    if (place < frame.size()) frame[place] ^= change;
    const bool is_right = (place >= frame.size() || change == 0) && !(settings_ & kOtherSecret);
    CoordinatorSession session = coordinator_.make_new();
    ByteString out;
    const auto events = session.receive(frame, out);
    const bool is_believed = !events.empty() && std::holds_alternative<CoordinatorSession::NodeIsEmpty>(events[0]);
    if (is_believed != is_right) found("a guardian's word is taken wrongly");
  }

  Reader events_;
  std::uint8_t settings_;
  Introduction introduction_;
  End<AgentSession> agent_;
  End<CoordinatorSession> coordinator_;
  Ledger to_coordinator_, to_agent_;
  std::int64_t now_ms_ = 0;
  std::size_t bytes_ = 0;
  bool has_joined_ = false;     // the agent has said NodeJoins
  bool is_introduced_ = false;  // to the coordinator
  bool has_welcomed_ = false;   // the coordinator
  bool is_welcomed_ = false;    // the agent
  bool has_ended_ = false;      // one of the sessions
};

}  // namespace
}  // namespace elastic

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  elastic::Story(elastic::protocol_events::Reader(data, size)).play();
  return 0;
}
