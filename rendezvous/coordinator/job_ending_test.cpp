#include "rendezvous/coordinator/job_ending.h"

#include <doctest/doctest.h>

using namespace elastic;
using coordinator::JobEnding;
using membership::MemberState;
using membership::Node;
using membership::Roster;
using protocol::JobResult;

namespace {

const coordinator::Slots kSlots = {{0, 0}, {1, 1}, {2, 2}};

// A node of the round, which has the rank of its agent.
Node& member(Roster& roster, protocol::AgentId agent, MemberState member_state = MemberState::kMember) {
  Node node;
  node.agent = agent;
  node.place.node_rank = static_cast<int>(agent);
  return roster.add(std::move(node), member_state);
}

JobResult failed_on(int node_rank) {
  return {.outcome = Outcome::kFailed,
          .failures = {{.node_rank = 0, .exit = {}, .stopped_by_us = true}, {.node_rank = node_rank, .exit = {}}}};
}

}  // namespace

TEST_CASE("all nodes are dismissed once each has the job result") {
  JobEnding ending;
  CHECK(!ending.job_result());
  ending.begin({}, 100);
  REQUIRE(ending.job_result());
  ending.has_heard(1, "");
  ending.has_heard(1, "");
  CHECK(!ending.decide(2, 0, 100).is_over);
  CHECK(!ending.decide(2, 0, 100).look_again_ms);
  CHECK(ending.is_heard_by(1));
  CHECK(!ending.is_heard_by(2));
  ending.has_heard(2, "");
  CHECK(ending.decide(2, 0, 100).is_over);
}

TEST_CASE("a node with workers that goes without the job result is waited for; one without workers is not") {
  Roster roster;
  JobEnding ending;
  ending.begin({}, 100);
  ending.has_gone(member(roster, 1, MemberState::kReady), {}, 5000);
  CHECK(ending.decide(0, 0, 100).is_over);
  ending.has_gone(member(roster, 2), kSlots, 5000);
  CHECK(!ending.decide(0, 0, 4999).is_over);
  CHECK(ending.decide(0, 0, 4999).look_again_ms == 5000);
  CHECK(ending.decide(0, 0, 5000).is_over);
}

TEST_CASE("a node that has the job result is not waited for when it goes, and does not count any more") {
  Roster roster;
  JobEnding ending;
  ending.begin({}, 100);
  ending.has_heard(1, "");
  ending.has_gone(member(roster, 1), kSlots, 5000);
  CHECK(!ending.decide(1, 0, 100).is_over);
  CHECK(ending.decide(0, 0, 100).is_over);
}

TEST_CASE("a node that went before the end is waited for, too, and longer if this process was asleep") {
  Roster roster;
  JobEnding ending;
  ending.has_gone(member(roster, 1, MemberState::kDone), kSlots, 5000);
  ending.stay_until(3000);
  ending.begin({}, 100);
  CHECK(ending.decide(0, 0, 100).look_again_ms == 5000);
  CHECK(ending.decide(0, 6000, 5000).look_again_ms == 6000);
  ending.stay_for_other_nodes(4000);
  CHECK(ending.decide(0, 0, 4000).is_over);
}

TEST_CASE("without anybody to wait for, messages that arrived during a sleep are not waited for") {
  JobEnding ending;
  ending.begin({}, 100);
  CHECK(ending.decide(0, 6000, 100).is_over);
}

TEST_CASE("the first details are kept") {
  JobEnding ending;
  ending.begin(failed_on(2), 0);
  ending.has_heard(1, "");
  ending.has_heard(2, "a traceback");
  ending.has_heard(3, "another");
  CHECK(ending.details() == "a traceback");
}

TEST_CASE("the node of the first failure that goes before it has sent details is waited for, but not for long") {
  Roster roster;
  Node& failed = member(roster, 2, MemberState::kReady);
  JobEnding ending;
  ending.begin(failed_on(2), 100);
  ending.has_gone(failed, kSlots, 5000);
  CHECK(ending.decide(0, 0, 100).look_again_ms == 100 + protocol::kDetailsMs);
  CHECK(ending.decide(0, 0, 100 + protocol::kDetailsMs).is_over);
  ending.has_heard(2, "a traceback");
  CHECK(ending.decide(1, 0, 200).is_over);
}

TEST_CASE("no details are awaited of other nodes, of nodes outside the round, and after a job that did not fail") {
  Roster roster;
  Node& first = member(roster, 2, MemberState::kReady);
  JobEnding ending;
  ending.begin(failed_on(2), 0);
  ending.has_gone(member(roster, 0, MemberState::kReady), kSlots, 5000);
  ending.has_gone(first, {}, 5000);
  CHECK(ending.decide(0, 0, 0).is_over);
  JobEnding stopped;
  JobResult job_result = failed_on(2);
  job_result.outcome = Outcome::kStopped;
  stopped.begin(job_result, 0);
  stopped.has_gone(first, kSlots, 5000);
  CHECK(stopped.decide(0, 0, 0).is_over);
}

TEST_CASE("details that a node has of the failure in another job result are none of a job that was stopped") {
  for (const Outcome outcome : {Outcome::kFailed, Outcome::kStopped}) {
    JobEnding ending;
    JobResult job_result = failed_on(2);
    job_result.outcome = outcome;
    ending.begin(job_result, 0);
    ending.has_heard(2, "a traceback");
    CHECK(ending.details().empty() == (outcome == Outcome::kStopped));
  }
}
