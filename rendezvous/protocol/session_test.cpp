#include "rendezvous/protocol/session.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/base/limits.h"

namespace elastic::protocol {
namespace {

using Kind = SessionError::Kind;

Nonce nonce_of(std::uint8_t first) {
  Nonce nonce{};
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::uint8_t>(first + i);
  return nonce;
}
const Nonce kAgentNonce = nonce_of(0x10);
const Nonce kCoordinatorNonce = nonce_of(0x80);
const Introduction kIntroduction = {"job-1", 0x0123456789ABCDEF, 0, 0};
const Welcome kWelcome = {3, 0xFEDCBA9876543210, 5000};
const NodeJoins kJoins = {.local_world_size = 8, .role = "default", .agent = kIntroduction.agent};

PrepareRound prepare(RoundNumber round) {
  PrepareRound message;
  message.round = round;
  message.reason = "a node was lost";
  return message;
}

// What a test makes of events: one line each.
std::string told(const SessionError& error) {
  const char* const kinds[] = {"version", "secret", "not ours", "malformed", "too long", "out of order",
                               "older term", "refused"};
  return std::string(kinds[static_cast<int>(error.kind)]) + ": " + error.text;
}
std::string told(const AgentSession::Event& event) {
  if (std::holds_alternative<AgentSession::Welcomed>(event)) return "welcomed";
  if (const auto* kept = std::get_if<AgentSession::Kept>(&event)) return "kept " + std::to_string(kept->sent_ms);
  if (const auto* got = std::get_if<AgentSession::Received>(&event)) return name_of(type_of(got->message));
  if (const auto* stale = std::get_if<AgentSession::Stale>(&event)) return "stale: " + stale->text;
  return told(std::get<SessionError>(event));
}
std::string told(const CoordinatorSession::Event& event) {
  if (std::holds_alternative<CoordinatorSession::Introduced>(event)) return "introduced";
  if (const auto* got = std::get_if<CoordinatorSession::Received>(&event)) return name_of(type_of(got->message));
  if (const auto* alive = std::get_if<CoordinatorSession::KeepAlive>(&event)) {
    return "keep-alive " + std::to_string(alive->number);
  }
  if (std::holds_alternative<CoordinatorSession::NodeIsEmpty>(event)) return "node is empty";
  if (const auto* stale = std::get_if<CoordinatorSession::Stale>(&event)) return "stale: " + stale->text;
  return told(std::get<SessionError>(event));
}
template <class Event>
std::vector<std::string> told(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(told(event));
  return lines;
}
using Lines = std::vector<std::string>;

// Both ends, and the bytes that are on their way.
struct Talk {
  explicit Talk(const std::string& agent_secret = "secret", const std::string& coordinator_secret = "secret",
                const Introduction& introduction = kIntroduction, const Version& agent_version = kOurVersion,
                const Version& coordinator_version = kOurVersion)
      : agent(introduction, agent_secret, kAgentNonce, agent_version),
        coordinator(coordinator_secret, kCoordinatorNonce, coordinator_version) {
    to_coordinator = agent.begin();
  }
  Lines at_coordinator() {
    const ByteString bytes = std::exchange(to_coordinator, {});
    return told(coordinator.receive(bytes, to_agent));
  }
  Lines at_agent() {
    const ByteString bytes = std::exchange(to_agent, {});
    return told(agent.receive(bytes, to_coordinator));
  }
  void say(const AgentMessage& message) { agent.send(message, to_coordinator); }
  void tell(const CoordinatorMessage& message) { coordinator.send(message, to_agent); }
  // Up to and with the PROOF.
  Talk& introduce() {
    at_coordinator();
    at_agent();
    REQUIRE(at_coordinator().at(0) == "introduced");
    return *this;
  }
  // Up to a WELCOME and a NodeJoins.
  Talk& welcome(const Welcome& welcome = kWelcome) {
    introduce();
    coordinator.welcome(welcome, to_agent);
    REQUIRE(at_agent() == Lines{"welcomed"});
    say(kJoins);
    REQUIRE(at_coordinator() == Lines{"NodeJoins"});
    return *this;
  }
  // A frame from the coordinator's end that it would not write itself.
  Lines forged_at_agent(const Stamp& stamp, const CoordinatorMessage& message) {
    append_frame(to_agent, stamp, message);
    return at_agent();
  }
  Lines forged_at_coordinator(const Stamp& stamp, const AgentMessage& message) {
    append_frame(to_coordinator, stamp, message);
    return at_coordinator();
  }
  AgentSession agent;
  CoordinatorSession coordinator;
  ByteString to_coordinator;
  ByteString to_agent;
};

// A frame without fields, of any type.
void append_raw(ByteString& out, std::uint8_t type, const ByteString& fields = {}) {
  const std::size_t length = 17 + fields.size();
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(length >> shift));
  out.push_back(type);
  out.insert(out.end(), 16, 0);
  out.insert(out.end(), fields.begin(), fields.end());
}

TEST_CASE("agent and coordinator introduce themselves and talk") {
  Talk talk;
  talk.say(kJoins);
  CHECK(talk.at_coordinator().empty());
  CHECK(talk.at_agent().empty());
  CHECK(talk.at_coordinator() == Lines{"introduced", "NodeJoins"});
  talk.coordinator.welcome(kWelcome, talk.to_agent);
  talk.tell(prepare(4));
  ByteString out;
  auto events = talk.agent.receive(talk.to_agent, out);
  REQUIRE(events.size() == 2);
  CHECK(std::get<AgentSession::Welcomed>(events[0]).welcome == kWelcome);
  CHECK((std::get<AgentSession::Received>(events[1]).message ==
         CoordinatorMessage(prepare(4))));
  talk.say(StoreIsOpen{4, {"10.0.0.1", 29500}});
  auto heard = talk.coordinator.receive(talk.to_coordinator, out);
  REQUIRE(heard.size() == 1);
  CHECK((std::get<CoordinatorSession::Received>(heard[0]).message ==
         AgentMessage(StoreIsOpen{4, {"10.0.0.1", 29500}})));
}

TEST_CASE("the coordinator learns which job an agent wants and what it knows of it") {
  const Introduction introduction = {std::string(limits::kAgentNameBytes, 'j'), 5, 6, 7};
  Talk talk("", "", introduction);
  talk.at_coordinator();
  talk.at_agent();
  ByteString out;
  const auto events = talk.coordinator.receive(talk.to_coordinator, out);
  REQUIRE(events.size() == 1);
  CHECK(std::get<CoordinatorSession::Introduced>(events[0]).introduction == introduction);
}

TEST_CASE("all that is said may come byte by byte") {
  Talk talk;
  talk.say(kJoins);
  talk.say(StoreIsOpen{});
  Lines at_agent, at_coordinator;
  const auto deliver = [](ByteString& bytes, auto& session, ByteString& out, Lines& lines) {
    for (const std::uint8_t byte : std::exchange(bytes, {})) {
      const ByteString copy = {byte};
      for (const std::string& line : told(session.receive(copy, out))) lines.push_back(line);
    }
  };
  for (int i = 0; i < 4; ++i) {
    deliver(talk.to_coordinator, talk.coordinator, talk.to_agent, at_coordinator);
    if (at_coordinator.size() == 2) talk.coordinator.welcome(kWelcome, talk.to_agent);
    deliver(talk.to_agent, talk.agent, talk.to_coordinator, at_agent);
  }
  CHECK(at_coordinator == Lines{"introduced", "NodeJoins", "StoreIsOpen"});
  CHECK(at_agent == Lines{"welcomed"});
}

// --- The secret. -------------------------------------------------------------------------------------

TEST_CASE("another secret, one or none is named on both sides, and nobody is introduced") {
  const auto outcome = [](const char* agent, const char* coordinator) {
    Talk talk(agent, coordinator);
    talk.say(kJoins);
    CHECK(talk.at_coordinator().empty());
    Lines lines = talk.at_agent();
    for (const std::string& line : talk.at_coordinator()) lines.push_back(line);
    CHECK(talk.at_agent().empty());
    return lines;
  };
  const std::string refused = "refused: it refused us: your proof of the job's secret is wrong: start all nodes of "
                              "the job with the same one, or all without";
  CHECK(outcome("a", "b") == Lines{"secret: it was started with another secret for the job than we", refused});
  CHECK(outcome("", "b") ==
        Lines{"secret: it was started with a secret for the job, and we were started without one", refused});
  CHECK(outcome("a", "") ==
        Lines{"secret: it was started without a secret for the job, and we were started with one", refused});
  CHECK(outcome("", "").empty() == false);
  CHECK(outcome("", "") == Lines{"introduced", "NodeJoins"});
}

TEST_CASE("an agent does not say more than its name to a coordinator that does not know the secret") {
  Talk talk("a", "b");
  talk.say(kJoins);
  talk.at_coordinator();
  talk.at_agent();
  FrameReader reader;
  Bytes mark(kMark);
  reader.next(mark, 4096);
  Bytes left(talk.to_coordinator);
  REQUIRE(reader.next(left, 4096) == FrameReader::Step::kFrame);
  CHECK(reader.frame().type == FrameType::kRefused);
  CHECK(left.empty());
}

TEST_CASE("a proof is worth nothing in another conversation") {
  Talk talk;
  const ByteString hello = talk.to_coordinator;
  talk.at_coordinator();
  const ByteString challenge = talk.to_agent;
  talk.at_agent();
  const ByteString proof = talk.to_coordinator;

  CoordinatorSession other("secret", nonce_of(0x81));
  ByteString out;
  CHECK(other.receive(hello, out).empty());
  CHECK(told(other.receive(proof, out)) ==
        Lines{"secret: its proof that it knows the job's secret is wrong"});

  AgentSession another(kIntroduction, "secret", nonce_of(0x11));
  another.begin();
  CHECK(told(another.receive(challenge, out)) ==
        Lines{"secret: it was started with another secret for the job than we"});

  // The same nonces, but another job.
  AgentSession elsewhere({"job-2", kIntroduction.agent, 0, 0}, "secret", kAgentNonce);
  elsewhere.begin();
  CHECK(told(elsewhere.receive(challenge, out)).at(0).starts_with("secret: "));
}

TEST_CASE("the coordinator's own proof, sent back to it, proves nothing") {
  Talk talk;
  talk.at_coordinator();
  FrameReader reader;
  Bytes left(talk.to_agent);
  REQUIRE(reader.next(left, 4096) == FrameReader::Step::kFrame);
  append_frame(talk.to_coordinator, {}, ProofFrame{read_challenge(reader.frame())->proof});
  CHECK(talk.at_coordinator().at(0).starts_with("secret: "));
}

TEST_CASE("no changed bit of HELLO, CHALLENGE or PROOF leads to an introduction") {
  Talk whole;
  const ByteString hello = whole.to_coordinator;
  whole.at_coordinator();
  const ByteString challenge = whole.to_agent;
  whole.at_agent();
  const ByteString proof = whole.to_coordinator;

  enum Changed { kHello, kChallenge, kProof };
  for (const Changed which : {kHello, kChallenge, kProof}) {
    const ByteString& original = which == kHello ? hello : which == kChallenge ? challenge : proof;
    for (std::size_t bit = 0; bit < original.size() * 8; ++bit) {
      ByteString changed = original;
      changed[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      AgentSession agent(kIntroduction, "secret", kAgentNonce);
      CoordinatorSession coordinator("secret", kCoordinatorNonce);
      agent.begin();
      ByteString to_agent, to_coordinator;
      coordinator.receive(which == kHello ? changed : hello, to_agent);
      if (which == kChallenge) to_agent = changed;
      agent.receive(to_agent, to_coordinator);
      if (which == kProof) to_coordinator = changed;
      const Lines lines = told(coordinator.receive(to_coordinator, to_agent));
      // Nothing follows from the stamp of a PROOF, which is not looked at.
      const bool is_stamp = which == kProof && bit / 8 >= 5 && bit / 8 < 21;
      CAPTURE(which);
      CAPTURE(bit);
      CHECK((!lines.empty() && lines[0] == "introduced") == is_stamp);
    }
  }
}

// --- Versions. ---------------------------------------------------------------------------------------

TEST_CASE("a newer minor version on either side works") {
  for (const auto& [agent, coordinator] : {std::pair(Version{1, 7}, Version{1, 0}), {{1, 0}, {1, 7}}}) {
    Talk talk("secret", "secret", kIntroduction, agent, coordinator);
    talk.welcome();
    append_raw(talk.to_agent, 128, {1, 2, 3});
    append_raw(talk.to_agent, 255);
    append_raw(talk.to_coordinator, 200);
    talk.tell(AreYouThere{});
    CHECK(talk.at_agent() == Lines{"AreYouThere"});
    CHECK(talk.at_coordinator().empty());
  }
}

TEST_CASE("a newer or older major version is refused on both sides, naming both") {
  const auto remedy = std::string(": run the same release of elastic-run on all nodes");
  Talk newer("secret", "secret", kIntroduction, {2, 0}, {1, 0});
  CHECK(newer.at_coordinator() ==
        Lines{"version: it speaks version 2.0 of the agent protocol, and we speak 1.0" + remedy});
  CHECK(newer.at_agent() ==
        Lines{"version: it speaks version 1.0 of the agent protocol, and we speak 2.0" + remedy});
  Talk older("secret", "secret", kIntroduction, {1, 3}, {2, 1});
  CHECK(older.at_coordinator() ==
        Lines{"version: it speaks version 1.3 of the agent protocol, and we speak 2.1" + remedy});
  CHECK(older.at_agent() ==
        Lines{"version: it speaks version 2.1 of the agent protocol, and we speak 1.3" + remedy});
}

TEST_CASE("of another major version only the version must be where it is") {
  ByteString hello(kMark.begin(), kMark.end());
  append_raw(hello, static_cast<std::uint8_t>(FrameType::kHello), {0x00, 0x02, 0x00, 0x05});
  CoordinatorSession coordinator("secret", kCoordinatorNonce);
  ByteString out;
  CHECK(told(coordinator.receive(hello, out)).at(0).starts_with("version: it speaks version 2.5 "));
  AgentSession agent(kIntroduction, "secret", kAgentNonce);
  agent.begin();
  ByteString challenge(kMark.begin(), kMark.end());
  append_raw(challenge, static_cast<std::uint8_t>(FrameType::kChallenge), {0x00, 0x03, 0x00, 0x00});
  CHECK(told(agent.receive(challenge, out)).at(0).starts_with("version: it speaks version 3.0 "));
}

// --- Stamps. -----------------------------------------------------------------------------------------

TEST_CASE("an agent passes over what is of an older term, and goes with a newer one") {
  Talk talk;
  talk.welcome({4, 11, 5000});
  CHECK(talk.forged_at_agent({11, 3, 0}, StopWorkers{.round = 9}) ==
        Lines{"stale: a StopWorkers of term 3, and the coordinator is at 4"});
  CHECK(talk.forged_at_agent({11, 3, 0}, EndJob{}) ==
        Lines{"stale: an EndJob of term 3, and the coordinator is at 4"});
  talk.coordinator.set_stamp(6, 12);
  talk.tell(RunWorkers{});
  CHECK(talk.at_agent() == Lines{"RunWorkers"});
  CHECK(talk.agent.welcome() == Welcome{6, 12, 5000});
  CHECK(talk.forged_at_agent({12, 5, 0}, Dismiss{}) ==
        Lines{"stale: a Dismiss of term 5, and the coordinator is at 6"});
  talk.say(WorkersSucceeded{});
  CHECK(talk.at_coordinator() == Lines{"WorkersSucceeded"});
}

TEST_CASE("an agent does not serve a coordinator of an older term than it has met") {
  Talk talk("secret", "secret", {"job-1", 1, 11, 5});
  talk.introduce();
  talk.coordinator.welcome({4, 11, 5000}, talk.to_agent);
  CHECK(talk.at_agent() ==
        Lines{"older term: it is the coordinator of term 4, and we have met one of term 5"});
  CHECK(talk.at_coordinator() ==
        Lines{"refused: it refused us: there is a coordinator of term 5, and you are at term 4"});
  Talk same("secret", "secret", {"job-1", 1, 11, 5});
  same.welcome({5, 11, 5000});
}

TEST_CASE("an agent passes over orders of an older round than is being prepared") {
  Talk talk;
  talk.welcome();
  talk.tell(prepare(7));
  talk.tell(prepare(6));
  talk.tell(RunCheck{6, 0, {}});
  talk.tell(RunWorkers{6, {}});
  talk.tell(RunWorkers{7, {}});
  talk.tell(RunWorkers{8, {}});
  CHECK(talk.at_agent() == Lines{"PrepareRound", "stale: a PrepareRound of round 6, and the job is at round 7",
                                 "stale: a RunCheck of round 6, and the job is at round 7",
                                 "stale: a RunWorkers of round 6, and the job is at round 7", "RunWorkers",
                                 "RunWorkers"});
  // What ends something is never too old.
  talk.tell(StopWorkers{.round = 6});
  talk.tell(EndJob{});
  talk.tell(Dismiss{});
  talk.tell(Rejected{});
  talk.tell(AreYouThere{});
  CHECK(talk.at_agent() == Lines{"StopWorkers", "EndJob", "Dismiss", "Rejected", "AreYouThere"});
}

TEST_CASE("rounds begin anew with another start of the job") {
  Talk talk;
  talk.welcome({1, 11, 5000});
  talk.tell(prepare(7));
  talk.coordinator.set_stamp(2, 12);
  talk.tell(prepare(0));
  CHECK(talk.at_agent() == Lines{"PrepareRound", "PrepareRound"});
}

TEST_CASE("a coordinator passes over what is of another incarnation, but not that a node joins or leaves") {
  Talk talk;
  talk.welcome({4, 0xAB, 5000});
  CHECK(talk.forged_at_coordinator({0xCD, 4, 0}, WorkersSucceeded{3}) ==
        Lines{"stale: a WorkersSucceeded of incarnation 00000000000000cd of the job, which is at 00000000000000ab"});
  CHECK(talk.forged_at_coordinator({0xCD, 4, 0}, NodeJoins{}) == Lines{"NodeJoins"});
  CHECK(talk.forged_at_coordinator({0xCD, 4, 0}, NodeLeaves{15}) == Lines{"NodeLeaves"});
  // An agent that has not yet heard of our new term speaks of the same rounds.
  talk.coordinator.set_stamp(9, 0xAB);
  CHECK(talk.forged_at_coordinator({0xAB, 4, 0}, WorkersSucceeded{3}) == Lines{"WorkersSucceeded"});
}

TEST_CASE("a coordinator gives way when an agent has met a newer one") {
  Talk talk;
  talk.welcome({4, 11, 5000});
  CHECK(talk.forged_at_coordinator({11, 5, 0}, WorkersSucceeded{3}) ==
        Lines{"older term: it has met a coordinator of term 5, and we are at term 4"});
  CHECK(talk.at_agent() ==
        Lines{"refused: it refused us: you have met a coordinator of term 5, and we are at term 4"});
}

TEST_CASE("news of another start of the job are not sent when the welcome names a new one") {
  Talk talk("secret", "secret", {"job-1", 1, 11, 1});
  talk.say(kJoins);
  talk.say(WorkerFailed{.round = 3, .failure = {}});
  talk.introduce();
  talk.say(NodeStopped{.round = 3, .failures = {}});
  talk.say(NodeLeaves{15});
  talk.coordinator.welcome({2, 12, 5000}, talk.to_agent);
  CHECK(talk.at_agent() == Lines{"welcomed",
                                 "stale: a WorkerFailed of ours, of another start of the job than the coordinator's",
                                 "stale: a NodeStopped of ours, of another start of the job than the coordinator's"});
  CHECK(talk.at_coordinator() == Lines{"NodeLeaves"});

  Talk same("secret", "secret", {"job-1", 1, 11, 1});
  same.say(kJoins);
  same.say(WorkerFailed{.round = 3, .failure = {}});
  same.introduce();
  same.coordinator.welcome({2, 11, 5000}, same.to_agent);
  CHECK(same.at_agent() == Lines{"welcomed"});
  CHECK(same.at_coordinator() == Lines{"WorkerFailed"});
}

// --- Keep-alives. ------------------------------------------------------------------------------------

TEST_CASE("the answer to a keep-alive says when it had been sent") {
  Talk talk;
  talk.agent.keep_alive(1, talk.to_coordinator);  // before the welcome there is nothing to keep
  talk.welcome();
  talk.agent.keep_alive(1000, talk.to_coordinator);
  talk.agent.keep_alive(2000, talk.to_coordinator);
  talk.agent.keep_alive(3000, talk.to_coordinator);
  CHECK(talk.at_coordinator() == Lines{"keep-alive 1", "keep-alive 2", "keep-alive 3"});
  talk.coordinator.kept(2, talk.to_agent);
  talk.coordinator.kept(1, talk.to_agent);
  talk.coordinator.kept(2, talk.to_agent);
  talk.coordinator.kept(3, talk.to_agent);
  CHECK(talk.at_agent() == Lines{"kept 2000",
                                 "stale: the answer to keep-alive 1, which was answered or is too old",
                                 "stale: the answer to keep-alive 2, which was answered or is too old", "kept 3000"});
}

TEST_CASE("an answer of an older term keeps nothing") {
  Talk talk;
  talk.welcome({4, 11, 5000});
  talk.agent.keep_alive(1000, talk.to_coordinator);
  append_frame(talk.to_agent, Stamp{11, 3, 0}, FrameType::kKept, KeepAliveFrame{1});
  CHECK(talk.at_agent() == Lines{"stale: a KEPT of term 3, and the coordinator is at 4"});
}

TEST_CASE("64 unanswered keep-alives are remembered") {
  Talk talk;
  talk.welcome();
  for (int i = 1; i <= 65; ++i) talk.agent.keep_alive(i * 1000, talk.to_coordinator);
  talk.coordinator.kept(1, talk.to_agent);
  talk.coordinator.kept(2, talk.to_agent);
  CHECK(talk.at_agent() == Lines{"stale: the answer to keep-alive 1, which was answered or is too old", "kept 2000"});
}

TEST_CASE("an answer to what was not sent ends the session") {
  Talk talk;
  talk.welcome();
  talk.coordinator.kept(1, talk.to_agent);
  CHECK(talk.at_agent() == Lines{"out of order: it answered keep-alive 1, which was not sent"});
  CHECK(talk.at_coordinator() == Lines{"refused: it refused us: you answered keep-alive 1, which was not sent"});
}

// --- What is not due, too long, or garbage. ------------------------------------------------------------

TEST_CASE("a frame that is not due ends the session, by name") {
  const auto first_at_coordinator = [](std::uint8_t type) {
    Talk talk;
    talk.to_coordinator.resize(kMark.size());
    append_raw(talk.to_coordinator, type);
    return talk.at_coordinator().at(0);
  };
  CHECK(first_at_coordinator(16) == "out of order: it sent a NodeJoins, which was not due");
  CHECK(first_at_coordinator(3) == "out of order: it sent a PROOF, which was not due");
  CHECK(first_at_coordinator(5) == "out of order: it sent a REFUSED, which was not due");
  CHECK(first_at_coordinator(200) == "malformed: it sent a frame of the unknown type 200");

  Talk early;  // news before the agent has joined
  early.introduce();
  early.coordinator.welcome(kWelcome, early.to_agent);
  CHECK(early.forged_at_coordinator({kWelcome.incarnation, 3, 0}, WorkersSucceeded{}) ==
        Lines{"out of order: it sent a WorkersSucceeded, which was not due"});

  Talk twice;
  twice.introduce();
  twice.coordinator.welcome(kWelcome, twice.to_agent);
  append_frame(twice.to_agent, Stamp{kWelcome.incarnation, 3, 0}, WelcomeFrame{5000});
  CHECK(twice.at_agent() == Lines{"welcomed", "out of order: it sent a WELCOME, which was not due"});

  Talk unwelcome;
  unwelcome.introduce();
  CHECK(unwelcome.forged_at_agent({}, PrepareRound{}) ==
        Lines{"out of order: it sent a PrepareRound, which was not due"});

  Talk mirrored;
  mirrored.welcome();
  append_frame(mirrored.to_agent, Stamp{kWelcome.incarnation, 3, 0}, AgentMessage(VerdictHeard{}));
  CHECK(mirrored.at_agent() == Lines{"out of order: it sent a VerdictHeard, which was not due"});
}

TEST_CASE("an unknown type below 128 ends the session") {
  Talk talk;
  talk.welcome();
  append_raw(talk.to_agent, 127);
  append_raw(talk.to_coordinator, 100);
  CHECK(talk.at_agent() == Lines{"malformed: it sent a frame of the unknown type 127"});
  CHECK(talk.at_coordinator() == Lines{"malformed: it sent a frame of the unknown type 100"});
}

TEST_CASE("what cannot be read is named with its reason") {
  Talk talk;
  talk.welcome();
  append_raw(talk.to_coordinator, static_cast<std::uint8_t>(FrameType::kNodeStopped), {0, 0, 1, 0});
  CHECK(talk.at_coordinator() ==
        Lines{"malformed: it sent a NodeStopped that cannot be read: a list of 256 items; at most 64 are allowed"});
  CHECK(talk.at_agent() ==
        Lines{"refused: it refused us: you sent a NodeStopped that cannot be read: a list of 256 items; at most 64 "
              "are allowed"});
}

TEST_CASE("a welcome with a senseless timeout is no welcome") {
  for (const std::int64_t timeout_ms : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX}) {
    Talk talk;
    talk.introduce();
    talk.coordinator.welcome({1, 2, timeout_ms}, talk.to_agent);
    CHECK(talk.at_agent().at(0).starts_with("malformed: it sent a WELCOME that cannot be read: a loss timeout is "));
  }
}

TEST_CASE("a stranger is named and not answered") {
  for (const std::string bytes : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "\x16\x03\x01", "garbage"}) {
    const Bytes received(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ByteString out;
    CoordinatorSession coordinator("secret", kCoordinatorNonce);
    CHECK(told(coordinator.receive(received, out)).at(0).starts_with("not ours: it "));
    AgentSession agent(kIntroduction, "secret", kAgentNonce);
    agent.begin();
    CHECK(told(agent.receive(received, out)).at(0).starts_with("not ours: it "));
    CHECK(out.empty());
    CHECK(coordinator.receive(received, out).empty());  // nothing more is taken
  }
}

TEST_CASE("a stranger may send 4 KiB, who knows the secret 256 KiB") {
  Talk stranger;
  stranger.to_coordinator.resize(kMark.size());
  append_raw(stranger.to_coordinator, static_cast<std::uint8_t>(FrameType::kHello), ByteString(4096 - 17 + 1));
  CHECK(stranger.at_coordinator() == Lines{"too long: it sent a frame of 4097 bytes; at most 4096 are allowed"});
  CHECK(stranger.at_agent() ==
        Lines{"refused: it refused us: you sent a frame of 4097 bytes; at most 4096 are allowed"});

  Talk known;
  known.welcome();
  append_raw(known.to_coordinator, 128, ByteString(256 * 1024 - 17));
  CHECK(known.at_coordinator().empty());
  append_raw(known.to_coordinator, 128, ByteString(256 * 1024 - 17 + 1));
  CHECK(known.at_coordinator() == Lines{"too long: it sent a frame of 262145 bytes; at most 262144 are allowed"});
}

TEST_CASE("after an error nothing is taken and nothing is sent") {
  Talk talk;
  talk.welcome();
  append_raw(talk.to_agent, 127);
  append_raw(talk.to_coordinator, 127);
  talk.at_agent();
  talk.at_coordinator();
  ByteString out;
  talk.agent.send(kJoins, out);
  talk.agent.keep_alive(1, out);
  talk.coordinator.send(Dismiss{}, out);
  talk.coordinator.kept(1, out);
  talk.coordinator.refuse("x", out);
  talk.coordinator.welcome(kWelcome, out);
  CHECK(out.empty());
  CHECK(talk.agent.receive(kMark, out).empty());
}

TEST_CASE("a refusal is told with its reason, at any time") {
  Talk first;
  first.coordinator.refuse("no more nodes", first.to_agent);
  CHECK(first.at_agent() == Lines{"refused: it refused us: no more nodes"});
  Talk introduced;
  introduced.introduce();
  introduced.coordinator.refuse("there is no job \"job-1\"\x1b[2J", introduced.to_agent);
  CHECK(introduced.at_agent() == Lines{"refused: it refused us: there is no job \"job-1\"\\x1b[2J"});
  Talk rejected;
  rejected.introduce();
  rejected.tell(Rejected{.why = Rejected::Why::kRankTaken, .reason = "rank 3 is taken", .retry_ms = {}});
  CHECK(rejected.at_agent() == Lines{"Rejected"});
}

// --- The guardian. -----------------------------------------------------------------------------------

TEST_CASE("a guardian says that its node is empty, on a connection of its own") {
  const ByteString frame = node_is_empty_frame({"job-1", 5, 6, 7}, 8, "secret");
  CoordinatorSession coordinator("secret", kCoordinatorNonce);
  ByteString out;
  const auto events = coordinator.receive(frame, out);
  REQUIRE(events.size() == 1);
  CHECK(std::get<CoordinatorSession::NodeIsEmpty>(events[0]) == CoordinatorSession::NodeIsEmpty{"job-1", 5, 6, 8});
  CHECK(out.empty());
  CHECK(coordinator.receive(frame, out).empty());  // it says no more
}

TEST_CASE("no changed bit of a guardian's word is believed, nor one made without the secret") {
  const ByteString frame = node_is_empty_frame({"job-1", 5, 6, 7}, 8, "secret");
  ByteString out;
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    ByteString changed = frame;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    CoordinatorSession coordinator("secret", kCoordinatorNonce);
    const Lines lines = told(coordinator.receive(changed, out));
    CHECK((lines.empty() || lines[0] != "node is empty"));
  }
  CoordinatorSession other("other", kCoordinatorNonce);
  CHECK(told(other.receive(frame, out)) ==
        Lines{"secret: it was started with another secret for the job than we"});
  CoordinatorSession secretive("secret", kCoordinatorNonce);
  CHECK(told(secretive.receive(node_is_empty_frame({"job-1", 5, 6, 7}, 8, ""), out)) ==
        Lines{"secret: it was started without a secret for the job, and we were started with one"});
}

}  // namespace
}  // namespace elastic::protocol
