// How a coordinator that takes a job over is elected by the votes of its nodes.
#include <doctest/doctest.h>

#include "rendezvous/coordinator/leadership_test_support.h"

using namespace elastic;
using namespace elastic::coordinator;
using namespace elastic::coordinator::testing;
using namespace elastic::coordinator::testing::majority;
using namespace elastic::protocol;

TEST_CASE("whoever takes a job over acts when a quorum of its last round has voted and acknowledged that") {
  Three earlier;
  Later job(earlier);
  job.comes(1);
  job.comes(2);
  CHECK_FALSE(job.coordinator.may_act());
  job.on(KeepAliveReceived{1});
  CHECK(job.coordinator.leader().granted_ms() == 0);
  CHECK(asked(job.votes(1)) == 0);
  CHECK(asked(job.votes(2)) == 2);
  CHECK_FALSE(job.coordinator.grants_leases());
  acknowledge(job, 1);
  CHECK_FALSE(job.coordinator.may_act());
  acknowledge(job, 2);
  CHECK(job.coordinator.may_act());
  CHECK(job.coordinator.grants_leases());
  job.on(KeepAliveReceived{1});
  CHECK(job.coordinator.leader().granted_ms() == 3'000);
  const Answer later = job.pass_with({1, 2}, 700);
  CHECK(later.all<StopWorkers>().size() == 2);  // node 3 has not come
}

TEST_CASE(
    "an acknowledgement without a voter state elects nobody, and neither does a vote that none was asked to confirm") {
  Three earlier;
  Later job(earlier);
  job.comes(1);
  job.comes(2);
  job.votes(1);
  acknowledge(job, 1);
  acknowledge(job, 2);
  CHECK_FALSE(job.coordinator.may_act());
}

TEST_CASE("votes for an earlier term count no more, and the nodes are asked again") {
  Three earlier;
  Later job(earlier);
  job.comes(1);
  job.comes(2);
  job.votes(1);
  const Answer raised = job.on(Introduced{7, 1'000'000'000});
  CHECK(asked(raised) == 2);
  CHECK(asked(job.votes(2)) == 0);
  CHECK(asked(job.votes(1)) == 2);
}

TEST_CASE("a node gets no job result of a coordinator that was not elected in time") {
  Three earlier;
  Later job(earlier);
  job.comes(1);
  job.votes(1);
  CHECK(job.pass_with({1}, 1'900).all<Resigned>().empty());
  const Answer over = job.pass_with({1}, 200);
  CHECK(over.all<EndJob>().empty());
  CHECK(over.to<Resigned>(1).why == "it was not elected: too few nodes of the last round support it");
  CHECK(job.coordinator.ended());
  CHECK_FALSE(job.coordinator.ending().job_result());
}

TEST_CASE("a candidate waits for more votes after each one, and for those who have voted enough to acknowledge that") {
  Three earlier;
  Later job(earlier);
  job.comes(1);
  job.comes(2);
  job.pass_with({1, 2}, 1'500);
  for (const std::int64_t pause_ms : {1'900, 1'500}) {
    job.votes(1);
    CHECK(job.pass_with({1, 2}, pause_ms).all<Resigned>().empty());
  }
  job.votes(2);
  CHECK(job.pass_with({1, 2}, 900).all<Resigned>().empty());
  CHECK(acknowledge(job, 1).all<Resigned>().empty());
  SUBCASE("which they do") {
    acknowledge(job, 2);
    CHECK(job.coordinator.may_act());
  }
  SUBCASE("but not for ever") { CHECK(job.pass_with({1, 2}, 200).all<Resigned>().size() == 2); }
}

TEST_CASE("a candidate that all nodes of the round have left campaigns no longer than one of them takes to come back") {
  Three earlier;
  Later job(earlier);
  job.comes(1);
  job.join(9);  // it has no vote
  job.on(SessionEnded{1, "reset"});
  CHECK(job.pass_with({9}, 200).all<Resigned>().empty());
  SUBCASE("nobody comes") { CHECK(job.pass_with({9}, 100).all<Resigned>().size() == 1); }
  SUBCASE("it comes back") {
    job.comes(1);
    CHECK(job.pass_with({1, 9}, 1'500).all<Resigned>().empty());
  }
}

TEST_CASE("a candidate quarantines no node that it loses: it needs every vote") {
  JobRules rules = kMajority;
  rules.node_losses = 1;
  Three earlier({.incarnation = 7, .now_ms = -10'000}, rules);
  Later job(earlier);
  job.comes(1);
  job.comes(2);
  job.on(SessionEnded{2, "reset"});
  CHECK(job.comes(2, AgentFacts::Activity::kIdle).all<Rejected>().empty());
}

TEST_CASE("a candidate campaigns for the loss timeout at most, and is not ended by the time to join") {
  Three earlier;
  earlier.rules.join_timeout_ms = 1'000;
  Later job(earlier);
  for (const NodeId node : {1u, 2u, 3u}) job.comes(node);
  for (int votes = 0; votes < 3; ++votes) {
    CHECK(job.pass_with({1, 2, 3}, 1'600).all<Resigned>().empty());
    job.votes(1);
  }
  CHECK(job.pass_with({1, 2, 3}, 300).all<Resigned>().size() == 3);
}

TEST_CASE("a voter state that makes no sense counts as that of a node that knows no round") {
  Three earlier;
  Later job(earlier);
  job.comes(1);
  job.comes(2);
  for (const NodeId node : {1u, 2u}) {
    VoterState senseless = runs(earlier.prepared.at(node - 1).second);
    senseless.rounds[0].rank = 3;
    CHECK(asked(acknowledge(job, node, senseless)) == 0);
  }
  CHECK(asked(job.votes(1)) == 0);
  CHECK(asked(job.votes(2)) == 2);
}
