#include "rendezvous/election/leader_lease.h"

#include <doctest/doctest.h>

#include "src/base/check_test_support.h"

using namespace elastic;
using namespace elastic::election;
using protocol::AgentId;

namespace {

constexpr protocol::LeaseTimes kTimes;
constexpr std::int64_t kHeld = 3'960;  // 4T/5 less 1 %

Round round_of(protocol::RoundNumber number, int node_count) {
  return {.term = 1, .number = number, .membership = number + 100U, .node_count = node_count};
}

// A coordinator in the process of agent 1 that runs round 0 of agents 1 to `count`, which voted at 0 ms.
LeaderLease running(AgentId count) {
  LeaderLease lease(kTimes, 1);
  std::vector<AgentId> members;
  for (AgentId agent = 1; agent <= count; ++agent) {
    members.push_back(agent);
    lease.acknowledges(agent, 0);
  }
  lease.prepare(round_of(0, static_cast<int>(count)), members);
  lease.run(0);
  return lease;
}

}  // namespace

TEST_CASE("a coordinator counts a vote for four fifths of T less 1 %, from before the agent gave it") {
  CHECK(kTimes.vote_ms() == 4'000);
  CHECK(kTimes.counted_vote_ms() == kHeld);
  // By an agent's clock that is faster by 1 % its vote ends no sooner.
  for (std::int64_t timeout_ms = 1'000; timeout_ms < 20'000; timeout_ms += 7) {
    const protocol::LeaseTimes times{timeout_ms};
    CHECK(times.counted_vote_ms() * 101 <= times.vote_ms() * 100);
    CHECK(times.lease_ms() < times.counted_vote_ms());
  }
  LeaderLease lease = running(3);
  lease.acknowledges(2, 1'000);
  CHECK(lease.authority().ends_ms() == 1'000 + kHeld);
  lease.acknowledges(3, 500);
  CHECK(lease.authority().ends_ms() == 1'000 + kHeld);
  lease.acknowledges(3, 3'000);
  CHECK(lease.authority().ends_ms() == 3'000 + kHeld);
  lease.acknowledges(2, 200);
  CHECK(lease.authority().ends_ms() == 3'000 + kHeld);
}

TEST_CASE("until the first round has run its coordinator needs nobody, and of two nodes its own is enough") {
  LeaderLease lease(kTimes, 1);
  CHECK_FALSE(lease.authority().ends_ms());
  lease.prepare(round_of(0, 3), {1, 2, 3});
  CHECK(lease.authority().holds(1'000'000));
  lease.abandon();
  CHECK_FALSE(running(2).authority().ends_ms());
  // A coordinator on none of the nodes needs half of them: it is the tie-breaker itself.
  LeaderLease outside(kTimes, {});
  outside.acknowledges(4, 100);
  outside.acknowledges(5, 0);
  outside.prepare(round_of(0, 2), {4, 5});
  outside.run(200);
  CHECK(outside.authority().ends_ms() == 100 + kHeld);
}

TEST_CASE("the agent in the coordinator's process counts for good once it has voted, and may be bound before") {
  LeaderLease lease(kTimes, 1);
  lease.prepare(round_of(0, 2), {1, 2});
  CHECK_FALSE(lease.may_run(100));
  lease.acknowledges(1, 100);
  REQUIRE(lease.may_run(200));
  lease.run(200);
  CHECK_FALSE(lease.authority().ends_ms());
}

TEST_CASE("the vote of an agent counts for the rounds of which it says that it is a member") {
  LeaderLease lease(kTimes, 1, {{round_of(7, 3), VoterSet(3, TieBreaker::node(0))}});
  lease.acknowledges(1, 0);
  CHECK(lease.authority() == Authority::none());
  lease.joins(1, {{.round = round_of(7, 3), .rank = 1}});
  lease.acknowledges(2, 100);
  CHECK(lease.authority() == Authority::none());
  lease.joins(2, {{.round = round_of(6, 3), .rank = 2}});
  lease.joins(2, {{.round = round_of(7, 3)}});
  CHECK(lease.authority() == Authority::none());
  lease.joins(2, {{.round = round_of(7, 3), .rank = 2}});
  CHECK(lease.authority().ends_ms() == 100 + kHeld);
}

TEST_CASE("a round that is prepared changes nothing; when it runs its quorum is needed, and no other") {
  LeaderLease lease = running(3);
  lease.acknowledges(2, 1'000);
  lease.acknowledges(4, 0);
  lease.acknowledges(5, 0);
  lease.acknowledges(6, 0);
  lease.prepare(round_of(1, 5), {1, 2, 4, 5, 6});
  CHECK(lease.authority().ends_ms() == 1'000 + kHeld);
  CHECK(lease.before() == std::vector<Round>{round_of(0, 3)});
  lease.abandon();
  CHECK(lease.authority().ends_ms() == 1'000 + kHeld);
  lease.prepare(round_of(2, 5), {1, 2, 4, 5, 6});
  lease.hears(1);
  lease.hears(2);
  REQUIRE(lease.may_run(1'000));
  lease.run(1'000);
  CHECK(lease.before() == std::vector<Round>{round_of(2, 5)});
  lease.acknowledges(3, 5'000);  // agent 3 is not in the round any more
  CHECK(lease.authority().ends_ms() == kHeld);
}

TEST_CASE("a round runs only when a quorum of the last one has heard of it") {
  LeaderLease lease = running(4);
  lease.prepare(round_of(1, 2), {1, 2});
  lease.hears(2);
  lease.hears(9);
  CHECK_FALSE(lease.may_run(0));
  CHECK_THROWS_AS(lease.run(0), CheckFailed);
  lease.hears(1);
  CHECK(lease.may_run(0));  // half is enough for the coordinator that formed the round
  lease.abandon();
  lease.prepare(round_of(2, 2), {1, 2});
  lease.hears(1);
  CHECK_FALSE(lease.may_run(0));
  lease.hears(4);
  CHECK(lease.may_run(0));
  CHECK_FALSE(lease.may_run(kHeld + 1));  // the votes of the other nodes have ended
}

TEST_CASE("who has heard of the next round counts for the last one also if its rank is learned later") {
  LeaderLease lease(kTimes, 1, {{round_of(7, 3), VoterSet(3, TieBreaker::node(0))}});
  lease.joins(1, {{.round = round_of(7, 3), .rank = 1}});
  lease.acknowledges(2, 0);
  lease.acknowledges(3, 0);
  lease.joins(3, {{.round = round_of(7, 3), .rank = 2}});
  lease.prepare(round_of(8, 2), {1, 3});
  lease.hears(1);
  lease.hears(2);
  CHECK_FALSE(lease.may_run(0));
  lease.joins(2, {{.round = round_of(7, 3), .rank = 0}});
  CHECK(lease.may_run(0));
}

TEST_CASE("half of a round is enough to hear of the next one only with the node of its coordinator") {
  LeaderLease lease(kTimes, 1);
  Round first = round_of(0, 2);
  first.tie_breaker = 0;
  lease.prepare(first, {1, 2});
  lease.acknowledges(2, 0);
  lease.run(0);
  lease.prepare(round_of(1, 1), {2});
  lease.hears(2);
  CHECK_FALSE(lease.may_run(0));  // agent 1 alone could be elected on round 0, and does not know of this one
  lease.hears(1);
  CHECK(lease.may_run(0));
}

TEST_CASE("an agent beside the coordinator that has left needs to hear of no round") {
  LeaderLease lease = running(3);
  CHECK(lease.died(1, 0));
  for (const protocol::RoundNumber number : {1U, 2U}) {
    lease.abandon();
    lease.prepare(round_of(number, 1), {2});
    CHECK_FALSE(lease.may_run(0));
    lease.hears(2);
    CHECK(lease.may_run(0));
  }
}

TEST_CASE("a member that died while its vote held counts for ever, and one that died later does not") {
  LeaderLease lease = running(5);
  CHECK(lease.authority().ends_ms() == kHeld);
  CHECK(lease.died(5, kHeld - 1));
  CHECK_FALSE(lease.died(4, kHeld));
  CHECK_FALSE(lease.died(77, 0));
  lease.acknowledges(2, 1'000);
  CHECK(lease.authority().ends_ms() == 1'000 + kHeld);
  LeaderLease late = running(5);
  CHECK_FALSE(late.died(5, kHeld));
  late.acknowledges(2, 1'000);
  CHECK_FALSE(late.authority().holds(kHeld));
}

TEST_CASE("no node lease lasts longer than the leader lease, nor a new round's quorum less long than the node leases") {
  LeaderLease lease = running(3);
  CHECK(lease.grant_ms(0) == 3'000);
  CHECK(lease.grant_ms(2'000) == 1'940);  // 1960 ms less 1 %
  CHECK(lease.grant_ms(kHeld) == 0);
  lease.acknowledges(2, 2'000);
  lease.acknowledges(4, -500);
  lease.acknowledges(5, -500);
  lease.prepare(round_of(1, 3), {1, 4, 5});
  for (const AgentId agent : {1U, 2U}) lease.hears(agent);
  CHECK_FALSE(lease.may_run(2'500));
  lease.acknowledges(4, 0);
  CHECK(lease.may_run(2'500));
}

TEST_CASE("a coordinator that begins the job grants whole leases") {
  LeaderLease lease(kTimes, 1);
  CHECK(lease.grant_ms(0) == 3'000);
}
