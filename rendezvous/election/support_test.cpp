#include "rendezvous/election/support.h"

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

// A coordinator beside agent 1 that runs round 0 of agents 1 to `count`, who promised at 0 ms.
Support running(AgentId count) {
  Support support(kTimes, 1);
  std::vector<AgentId> members;
  for (AgentId agent = 1; agent <= count; ++agent) {
    members.push_back(agent);
    support.promises(agent, 0);
  }
  support.prepare(round_of(0, static_cast<int>(count)), members);
  support.run(0);
  return support;
}

}  // namespace

TEST_CASE("a coordinator counts a promise for four fifths of T less 1 %, from before the agent made it") {
  CHECK(kTimes.promise_ms() == 4'000);
  CHECK(kTimes.support_ms() == kHeld);
  // By a clock that is faster by 1 % the agent's time is over no sooner.
  for (std::int64_t timeout_ms = 1'000; timeout_ms < 20'000; timeout_ms += 7) {
    const protocol::LeaseTimes times{timeout_ms};
    CHECK(times.support_ms() * 101 <= times.promise_ms() * 100);
    CHECK(times.lease_ms() < times.support_ms());
  }
  Support support = running(3);
  support.promises(2, 1'000);
  CHECK(support.authority().ends_ms() == 1'000 + kHeld);
  support.promises(3, 500);
  CHECK(support.authority().ends_ms() == 1'000 + kHeld);
  support.promises(3, 3'000);
  CHECK(support.authority().ends_ms() == 3'000 + kHeld);
  support.promises(2, 200);
  CHECK(support.authority().ends_ms() == 3'000 + kHeld);
}

TEST_CASE("until the first round has run its coordinator needs nobody, and of two nodes its own is enough") {
  Support support(kTimes, 1);
  CHECK_FALSE(support.authority().ends_ms());
  support.prepare(round_of(0, 3), {1, 2, 3});
  CHECK(support.authority().holds(1'000'000));
  support.abandon();
  CHECK_FALSE(running(2).authority().ends_ms());
  // On none of the nodes it needs half of them, which it decides itself.
  Support outside(kTimes, {});
  outside.promises(4, 100);
  outside.promises(5, 0);
  outside.prepare(round_of(0, 2), {4, 5});
  outside.run(200);
  CHECK(outside.authority().ends_ms() == 100 + kHeld);
}

TEST_CASE("the agent in the coordinator's process counts for good once it has promised, and may be bound before") {
  Support support(kTimes, 1);
  support.prepare(round_of(0, 2), {1, 2});
  CHECK_FALSE(support.may_run(100));
  support.promises(1, 100);
  REQUIRE(support.may_run(200));
  support.run(200);
  CHECK_FALSE(support.authority().ends_ms());
}

TEST_CASE("what one agent promised by its vote counts for the rounds of which it says that it is") {
  Support support(kTimes, 1, {{round_of(7, 3), Electorate(3, TieBreaker::node(0))}});
  support.promises(1, 0);
  CHECK(support.authority() == Authority::none());
  support.joins(1, {{.round = round_of(7, 3), .rank = 1}});
  support.promises(2, 100);
  CHECK(support.authority() == Authority::none());
  support.joins(2, {{.round = round_of(6, 3), .rank = 2}});
  support.joins(2, {{.round = round_of(7, 3)}});
  CHECK(support.authority() == Authority::none());
  support.joins(2, {{.round = round_of(7, 3), .rank = 2}});
  CHECK(support.authority().ends_ms() == 100 + kHeld);
}

TEST_CASE("a round that is prepared changes nothing; when it runs its quorum is needed, and no other") {
  Support support = running(3);
  support.promises(2, 1'000);
  support.promises(4, 0);
  support.promises(5, 0);
  support.promises(6, 0);
  support.prepare(round_of(1, 5), {1, 2, 4, 5, 6});
  CHECK(support.authority().ends_ms() == 1'000 + kHeld);
  CHECK(support.before() == std::vector<Round>{round_of(0, 3)});
  support.abandon();
  CHECK(support.authority().ends_ms() == 1'000 + kHeld);
  support.prepare(round_of(2, 5), {1, 2, 4, 5, 6});
  support.hears(1);
  support.hears(2);
  REQUIRE(support.may_run(1'000));
  support.run(1'000);
  CHECK(support.before() == std::vector<Round>{round_of(2, 5)});
  support.promises(3, 5'000);  // is not of the round any more
  CHECK(support.authority().ends_ms() == kHeld);
}

TEST_CASE("a round runs only when a quorum of the last one has heard of it") {
  Support support = running(4);
  support.prepare(round_of(1, 2), {1, 2});
  support.hears(2);
  support.hears(9);
  CHECK_FALSE(support.may_run(0));
  CHECK_THROWS_AS(support.run(0), CheckFailed);
  support.hears(1);
  CHECK(support.may_run(0));  // half, of the coordinator that formed the round
  support.abandon();
  support.prepare(round_of(2, 2), {1, 2});
  support.hears(1);
  CHECK_FALSE(support.may_run(0));
  support.hears(4);
  CHECK(support.may_run(0));
  CHECK_FALSE(support.may_run(kHeld + 1));  // node 2 has gone silent: half of both, so that it needs the others
}

TEST_CASE("who has heard of the next round counts for the last one also if its rank is learned later") {
  Support support(kTimes, 1, {{round_of(7, 3), Electorate(3, TieBreaker::node(0))}});
  support.joins(1, {{.round = round_of(7, 3), .rank = 1}});
  support.promises(2, 0);
  support.promises(3, 0);
  support.joins(3, {{.round = round_of(7, 3), .rank = 2}});
  support.prepare(round_of(8, 2), {1, 3});
  support.hears(1);
  support.hears(2);
  CHECK_FALSE(support.may_run(0));
  support.joins(2, {{.round = round_of(7, 3), .rank = 0}});
  CHECK(support.may_run(0));
}

TEST_CASE("half of a round is enough to hear of the next one only with the node of its coordinator") {
  Support support(kTimes, 1);
  Round first = round_of(0, 2);
  first.tie_breaker = 0;
  support.prepare(first, {1, 2});
  support.promises(2, 0);
  support.run(0);
  support.prepare(round_of(1, 1), {2});
  support.hears(2);
  CHECK_FALSE(support.may_run(0));  // agent 1 alone could be elected on round 0, and would not know of this one
  support.hears(1);
  CHECK(support.may_run(0));
}

TEST_CASE("an agent beside the coordinator that has left needs to hear of no round") {
  Support support = running(3);
  CHECK(support.died(1, 0));
  for (const protocol::RoundNumber number : {1U, 2U}) {
    support.abandon();
    support.prepare(round_of(number, 1), {2});
    CHECK_FALSE(support.may_run(0));
    support.hears(2);
    CHECK(support.may_run(0));
  }
}

TEST_CASE("a member that died while its promise held counts for ever, and one that died later does not") {
  Support support = running(5);
  CHECK(support.authority().ends_ms() == kHeld);
  CHECK(support.died(5, kHeld - 1));
  CHECK_FALSE(support.died(4, kHeld));
  CHECK_FALSE(support.died(77, 0));
  support.promises(2, 1'000);
  CHECK(support.authority().ends_ms() == 1'000 + kHeld);
  Support late = running(5);
  CHECK_FALSE(late.died(5, kHeld));
  late.promises(2, 1'000);
  CHECK_FALSE(late.authority().holds(kHeld));
}

TEST_CASE("no lease lasts longer than the authority, nor a new round's quorum less long than the leases") {
  Support support = running(3);
  CHECK(support.lend_ms(0) == 3'000);
  CHECK(support.lend_ms(2'000) == 1'940);  // 1960 ms less 1 %
  CHECK(support.lend_ms(kHeld) == 0);
  support.promises(2, 2'000);
  support.promises(4, -500);
  support.promises(5, -500);
  support.prepare(round_of(1, 3), {1, 4, 5});
  for (const AgentId agent : {1U, 2U}) support.hears(agent);
  CHECK_FALSE(support.may_run(2'500));
  support.promises(4, 0);
  CHECK(support.may_run(2'500));
}

TEST_CASE("a coordinator that begins the job lends whole leases") {
  Support support(kTimes, 1);
  CHECK(support.lend_ms(0) == 3'000);
}
