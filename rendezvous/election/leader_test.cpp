#include "rendezvous/election/leader.h"

#include <doctest/doctest.h>

#include "rendezvous/election/round.h"

using namespace elastic;
using namespace elastic::election;
using protocol::AgentId;
using protocol::NextLeader;

namespace {

constexpr protocol::LeaseTimes kTimes;
constexpr AgentId kOwn = 11;

// A voter that has run a round of three nodes, which the coordinator of term 1 formed on the node of rank 0.
VoterState ran(int rank) {
  const Round round{.term = 1, .number = 4, .membership = 104, .node_count = 3, .tie_breaker = 0};
  return {.rounds = {{.round = round, .rank = rank, .has_run = true}}};
}

NextLeaderCandidate at(AgentId agent, std::uint16_t port) {
  return {.node = {.agent = agent, .addresses = "10.0.0.1", .port = port}};
}

}  // namespace

TEST_CASE("where votes do not count a coordinator may run rounds, grants leases without limit, and names nobody") {
  Leader leader(kTimes, kOwn, {});
  leader.follow(false, true, 0);
  leader.grant(0);
  CHECK(leader.run(0));
  CHECK_FALSE(leader.granted_ms());
  CHECK(leader.why_over(1'000'000).empty());
  CHECK(leader.next_leaders({at(kOwn, 1), at(12, 1)}).empty());
}

TEST_CASE(
    "a candidate grants nothing, asks once for each change of its voters, and acts when a quorum has acknowledged") {
  Leader leader(kTimes, kOwn, {});
  leader.follow(true, true, 0);
  leader.grant(0);
  CHECK(leader.granted_ms() == 0);
  CHECK_FALSE(leader.run(0));
  leader.acknowledges(kOwn, ran(1), 0, 0);
  CHECK_FALSE(leader.count_votes(true, 0).asks);
  leader.acknowledges(12, ran(2), 0, 0);
  CHECK(leader.count_votes(true, 0).asks);
  CHECK_FALSE(leader.count_votes(true, 0).asks);
  for (const AgentId agent : {kOwn, AgentId{12}}) leader.acknowledges(agent, {}, 10, 20);
  CHECK(leader.count_votes(true, 20).others_may_run_until_ms);
  CHECK(leader.may_act());
  leader.grant(20);
  CHECK(leader.granted_ms() > 0);
}

TEST_CASE("a candidate whose votes do not come, or that its voters have left, is over") {
  Leader leader(kTimes, kOwn, {});
  leader.follow(true, true, 0);
  CHECK(leader.why_over(kTimes.next_vote_ms() - 1).empty());
  CHECK_FALSE(leader.why_over(kTimes.next_vote_ms()).empty());
  CHECK_FALSE(leader.count_votes(false, 100).asks);
  CHECK_FALSE(leader.why_over(100 + protocol::LeaseTimes::kConnectMs).empty());
  leader.count_votes(true, 110);
  CHECK(leader.why_over(100 + protocol::LeaseTimes::kConnectMs).empty());
}

TEST_CASE("nodes with a peer port that is not shut may lead next, and a process on none of the nodes comes last") {
  const NextLeader process{.agent = 99, .node_rank = -1, .addresses = "10.0.0.9", .port = 9};
  Leader leader(kTimes, {}, process);
  leader.follow(true, false, 0);
  CHECK(leader.is_to_try(13, 0));
  leader.peer_port_tried(13, false);
  const auto chosen = leader.next_leaders({at(12, 1), at(13, 1), at(14, 0)});
  REQUIRE(chosen.size() == 2);
  CHECK(chosen[0] == NextLeader{.agent = 12, .node_rank = 0, .addresses = "10.0.0.1", .port = 1});
  CHECK(chosen[1] == process);
}

TEST_CASE("leadership is transferred by a sole leader only, to another agent with a peer port that is not shut") {
  constexpr AgentId kOther = 12;
  constexpr AgentId kShut = 13;
  Leader leader(kTimes, kOwn, {});
  leader.follow(true, false, 0);
  CHECK(leader.is_to_try(kShut, 0));
  leader.peer_port_tried(kShut, false);
  CHECK_FALSE(leader.may_transfer_to(kOther, true, 0));  // no round has run
  leader.begin_round({.term = 1, .number = 1, .membership = 101, .node_count = 3, .tie_breaker = {}},
                     {at(kOwn, 1), at(kOther, 1), at(kShut, 1)});
  for (const AgentId agent : {kOwn, kOther, kShut}) {
    leader.acknowledges(agent, VoterState{}, 0, 0);
    leader.hears(agent);
  }
  REQUIRE(leader.run(10));
  CHECK(leader.may_transfer_to(kOther, true, 10));
  CHECK_FALSE(leader.may_transfer_to(kShut, true, 10));
  CHECK_FALSE(leader.may_transfer_to(kOther, false, 10));
  CHECK_FALSE(leader.may_transfer_to(kOwn, true, 10));
  CHECK_FALSE(leader.may_transfer_to(kOther, true, 1'000'000));  // its votes have run out
}
