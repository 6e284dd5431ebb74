#include "rendezvous/protocol/session.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/protocol/session_test_support.h"
#include "src/base/limits.h"

namespace elastic::protocol {
namespace {

using namespace test;

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
  CHECK((std::get<AgentSession::Received>(events[1]).message == CoordinatorMessage(prepare(4))));
  talk.say(StoreIsOpen{4, {"10.0.0.1", 29500}});
  auto heard = talk.coordinator.receive(talk.to_coordinator, out);
  REQUIRE(heard.size() == 1);
  CHECK(
      (std::get<CoordinatorSession::Received>(heard[0]).message == AgentMessage(StoreIsOpen{4, {"10.0.0.1", 29500}})));
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
  const std::string refused =
      "refused: it refused us: your proof of the job's secret is wrong: start all nodes of "
      "the job with the same one, or all without";
  CHECK(outcome("a", "b") == Lines{"secret: it was started with another secret than this node", refused});
  CHECK(outcome("", "b") == Lines{"secret: it was started with a secret, and this node without one", refused});
  CHECK(outcome("a", "") == Lines{"secret: it was started without a secret, and this node with one", refused});
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
  CHECK(told(other.receive(proof, out)) == Lines{"secret: its proof that it knows the job's secret is wrong"});

  AgentSession another(kIntroduction, "secret", nonce_of(0x11));
  another.begin();
  CHECK(told(another.receive(challenge, out)) == Lines{"secret: it was started with another secret than this node"});

  // The nonces are the same, but the job is another one.
  AgentSession redirect({"job-2", kIntroduction.agent, 0, 0}, "secret", kAgentNonce);
  redirect.begin();
  CHECK(told(redirect.receive(challenge, out)).at(0).starts_with("secret: "));
}

TEST_CASE("the coordinator's own proof, sent back to it, proves nothing") {
  Talk talk;
  talk.at_coordinator();
  FrameReader reader;
  Bytes left(talk.to_agent);
  REQUIRE(reader.next(left, 4096) == FrameReader::Step::kFrame);
  append_frame(talk.to_coordinator, {}, ProofFrame{read_frame<Challenge>(reader.frame())->proof});
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
      // The stamp of a PROOF is not read.
      const bool is_stamp = which == kProof && bit / 8 >= 5 && bit / 8 < 21;
      CAPTURE(which);
      CAPTURE(bit);
      CHECK((!lines.empty() && lines[0] == "introduced") == is_stamp);
    }
  }
}

// --- Versions. ---------------------------------------------------------------------------------------

TEST_CASE("a newer minor version on either side works") {
  for (const auto& [agent, coordinator] : {std::pair(Version{2, 7}, Version{2, 0}), {{2, 0}, {2, 7}}}) {
    Talk talk("secret", "secret", kIntroduction, agent, coordinator);
    talk.welcome();
    append_raw(talk.to_agent, 129, {1, 2, 3});
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
        Lines{"version: it speaks version 2.0 of the agent protocol, and this node speaks 1.0" + remedy});
  CHECK(newer.at_agent() ==
        Lines{"version: it speaks version 1.0 of the agent protocol, and this node speaks 2.0" + remedy});
  Talk older("secret", "secret", kIntroduction, {1, 3}, {2, 1});
  CHECK(older.at_coordinator() ==
        Lines{"version: it speaks version 1.3 of the agent protocol, and this node speaks 2.1" + remedy});
  CHECK(older.at_agent() ==
        Lines{"version: it speaks version 2.1 of the agent protocol, and this node speaks 1.3" + remedy});
}

TEST_CASE("of another major version only the version must be where it is") {
  ByteString hello(kMark.begin(), kMark.end());
  append_raw(hello, static_cast<std::uint8_t>(FrameType::kHello), {0x00, 0x01, 0x00, 0x05});
  CoordinatorSession coordinator("secret", kCoordinatorNonce);
  ByteString out;
  CHECK(told(coordinator.receive(hello, out)).at(0).starts_with("version: it speaks version 1.5 "));
  AgentSession agent(kIntroduction, "secret", kAgentNonce);
  agent.begin();
  ByteString challenge(kMark.begin(), kMark.end());
  append_raw(challenge, static_cast<std::uint8_t>(FrameType::kChallenge), {0x00, 0x03, 0x00, 0x00});
  CHECK(told(agent.receive(challenge, out)).at(0).starts_with("version: it speaks version 3.0 "));
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
  CHECK(coordinator.receive(frame, out).empty());  // nothing else is accepted on this connection
}

TEST_CASE("no changed bit of a death notice is believed, nor one made without the secret") {
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
  CHECK(told(other.receive(frame, out)) == Lines{"secret: it was started with another secret than this node"});
  CoordinatorSession secretive("secret", kCoordinatorNonce);
  CHECK(told(secretive.receive(node_is_empty_frame({"job-1", 5, 6, 7}, 8, ""), out)) ==
        Lines{"secret: it was started without a secret, and this node with one"});
}

}  // namespace
}  // namespace elastic::protocol
