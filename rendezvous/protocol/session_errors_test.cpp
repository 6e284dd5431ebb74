#include "rendezvous/protocol/session.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "rendezvous/protocol/session_test_support.h"

namespace elastic::protocol {
namespace {

using namespace test;

TEST_CASE("a frame that is not due ends the session, by name") {
  const auto first_at_coordinator = [](std::uint8_t type) {
    Talk talk;
    talk.to_coordinator.resize(kMark.size());
    return talk.raw_at_coordinator(type).at(0);
  };
  CHECK(first_at_coordinator(16) == "out of order: it sent a NodeJoins, which was not due");
  CHECK(first_at_coordinator(3) == "out of order: it sent a PROOF, which was not due");
  CHECK(first_at_coordinator(5) == "out of order: it sent a REFUSED, which was not due");
  CHECK(first_at_coordinator(200) == "malformed: it sent a frame of the unknown type 200");

  Talk early;  // a message comes before the agent has joined
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
  append_frame(mirrored.to_agent, Stamp{kWelcome.incarnation, 3, 0}, AgentMessage(JobResultHeard{}));
  CHECK(mirrored.at_agent() == Lines{"out of order: it sent a VerdictHeard, which was not due"});
}

TEST_CASE("an unknown type below 128 ends the session") {
  Talk talk;
  talk.welcome();
  append_raw(talk.to_coordinator, 100);
  CHECK(talk.raw_at_agent(127) == Lines{"malformed: it sent a frame of the unknown type 127"});
  CHECK(talk.at_coordinator() == Lines{"malformed: it sent a frame of the unknown type 100"});
}

TEST_CASE("what cannot be read is named with its reason") {
  Talk talk;
  talk.welcome();
  CHECK(talk.raw_at_coordinator(static_cast<std::uint8_t>(FrameType::kNodeStopped), {0, 0, 1, 0}) ==
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
    CHECK(coordinator.receive(received, out).empty());  // further bytes are ignored
  }
}

TEST_CASE("a stranger may send 4 KiB, who knows the secret 256 KiB") {
  Talk stranger;
  stranger.to_coordinator.resize(kMark.size());
  CHECK(stranger.raw_at_coordinator(static_cast<std::uint8_t>(FrameType::kHello), ByteString(4096 - 17 + 1)) ==
        Lines{"too long: it sent a frame of 4097 bytes; at most 4096 are allowed"});
  CHECK(stranger.at_agent() ==
        Lines{"refused: it refused us: you sent a frame of 4097 bytes; at most 4096 are allowed"});

  Talk known;
  known.welcome();
  CHECK(known.raw_at_coordinator(200, ByteString(256 * 1024 - 17)).empty());
  CHECK(known.raw_at_coordinator(200, ByteString(256 * 1024 - 17 + 1)) ==
        Lines{"too long: it sent a frame of 262145 bytes; at most 262144 are allowed"});
}

TEST_CASE("after an error nothing is taken and nothing is sent") {
  Talk talk;
  talk.welcome();
  talk.raw_at_agent(127);
  talk.raw_at_coordinator(127);
  ByteString out;
  talk.agent.send(kJoins, out);
  talk.agent.keep_alive(1, out);
  talk.coordinator.send(Dismiss{}, out);
  talk.coordinator.grant_lease(1, {}, false, out);
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

TEST_CASE("a redirect is believed only of those who know the secret") {
  const Redirect redirect = {"10.0.0.9 fd77::9", 29400, 700};
  const auto told = [&](Talk& talk) {
    talk.coordinator.refuse("it is not here", talk.to_agent, redirect);
    ByteString out;
    const auto events = talk.agent.receive(std::exchange(talk.to_agent, {}), out);
    REQUIRE(events.size() == 1);
    return std::get<SessionError>(events[0]).redirect;
  };
  Talk first;
  CHECK_FALSE(told(first));
  Talk introduced;
  introduced.introduce();
  CHECK(told(introduced) == redirect);
}

}  // namespace
}  // namespace elastic::protocol
