#include "rendezvous/protocol/session.h"

#include <doctest/doctest.h>

#include <string>

#include "rendezvous/protocol/session_test_support.h"

namespace elastic::protocol {
namespace {

using namespace test;

// --- Stamps. -----------------------------------------------------------------------------------------

TEST_CASE("an agent passes over what is of an older term, and goes with a newer one") {
  Talk talk;
  talk.welcome({4, 11, 5000});
  CHECK(talk.forged_at_agent({11, 3, 0}, StopWorkers{.round = 9}) ==
        Lines{"stale: a StopWorkers of term 3, and the coordinator is at 4"});
  CHECK(talk.forged_at_agent({11, 3, 0}, EndJob{}) == Lines{"stale: an EndJob of term 3, and the coordinator is at 4"});
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
  CHECK(talk.at_agent() == Lines{"older term: it is the coordinator of term 4, but this node has met one of term 5"});
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
  // Messages that end something are never too old.
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
  // An agent that does not know the new term yet means the same rounds.
  talk.coordinator.set_stamp(9, 0xAB);
  CHECK(talk.forged_at_coordinator({0xAB, 4, 0}, WorkersSucceeded{3}) == Lines{"WorkersSucceeded"});
}

TEST_CASE("a coordinator gives way when an agent has met a newer one") {
  Talk talk;
  talk.welcome({4, 11, 5000});
  CHECK(talk.forged_at_coordinator({11, 5, 0}, WorkersSucceeded{3}) ==
        Lines{"older term: it has met a coordinator of term 5, but this one has term 4"});
  CHECK(talk.at_agent() ==
        Lines{"refused: it refused us: you have met a coordinator of term 5, but this one has term 4"});
}

TEST_CASE("news of another start of the job are not sent when the welcome names a new one") {
  Talk talk("secret", "secret", {"job-1", 1, 11, 1});
  talk.say(kJoins);
  talk.say(WorkerFailed{.round = 3, .failure = {}});
  talk.introduce();
  talk.say(NodeStopped{.round = 3, .failures = {}});
  talk.say(NodeLeaves{15});
  talk.coordinator.welcome({2, 12, 5000}, talk.to_agent);
  CHECK(talk.at_agent() ==
        Lines{"welcomed",
              "stale: a WorkerFailed of this node, which is about another start of the job than the coordinator's",
              "stale: a NodeStopped of this node, which is about another start of the job than the coordinator's"});
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
  talk.agent.keep_alive(1, talk.to_coordinator);  // nothing is sent before the welcome
  talk.welcome();
  talk.agent.keep_alive(1000, talk.to_coordinator);
  talk.agent.keep_alive(2000, talk.to_coordinator);
  talk.agent.keep_alive(3000, talk.to_coordinator);
  CHECK(talk.at_coordinator() == Lines{"keep-alive 1", "keep-alive 2", "keep-alive 3"});
  talk.coordinator.grant_lease(2, {}, false, talk.to_agent);
  talk.coordinator.grant_lease(1, {}, false, talk.to_agent);
  talk.coordinator.grant_lease(2, {}, false, talk.to_agent);
  talk.coordinator.grant_lease(3, {}, false, talk.to_agent);
  CHECK(talk.at_agent() == Lines{"kept 2000", "stale: the answer to keep-alive 1, which was answered or is too old",
                                 "stale: the answer to keep-alive 2, which was answered or is too old", "kept 3000"});
}

TEST_CASE("a lease grant of an older term extends no lease") {
  Talk talk;
  talk.welcome({4, 11, 5000});
  talk.agent.keep_alive(1000, talk.to_coordinator);
  append_frame(talk.to_agent, Stamp{11, 3, 0}, LeaseGrantFrame{1});
  CHECK(talk.at_agent() == Lines{"stale: a KEPT of term 3, and the coordinator is at 4"});
}

TEST_CASE("64 unanswered keep-alives are remembered") {
  Talk talk;
  talk.welcome();
  for (int i = 1; i <= 65; ++i) talk.agent.keep_alive(i * 1000, talk.to_coordinator);
  talk.coordinator.grant_lease(1, {}, false, talk.to_agent);
  talk.coordinator.grant_lease(2, {}, false, talk.to_agent);
  CHECK(talk.at_agent() == Lines{"stale: the answer to keep-alive 1, which was answered or is too old", "kept 2000"});
}

TEST_CASE("an answer to what was not sent ends the session") {
  Talk talk;
  talk.welcome();
  talk.coordinator.grant_lease(1, {}, false, talk.to_agent);
  CHECK(talk.at_agent() == Lines{"out of order: it answered keep-alive 1, which was not sent"});
  CHECK(talk.at_coordinator() == Lines{"refused: it refused us: you answered keep-alive 1, which was not sent"});
}

}  // namespace
}  // namespace elastic::protocol
