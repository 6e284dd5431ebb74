#include "rendezvous/election/voter.h"

#include <doctest/doctest.h>

#include "src/base/check_test_support.h"

using namespace elastic;
using namespace elastic::election;

namespace {

constexpr protocol::LeaseTimes kTimes;
constexpr CoordinatorId kOld{1, 0};
constexpr CoordinatorId kNew{5, 7};
const Voter::Circumstances kTraining{
    .holds_lease = true, .runs_workers = true, .round = {.term = 1, .number = 3, .node_count = 4}, .rank = 2};

// An agent that has acknowledged a lease grant of kOld at 1000 ms.
Voter attached() {
  Voter agent(kTimes);
  agent.vote(kOld, 500);
  CHECK(agent.lease_granted(kOld, 1'000));
  return agent;
}

}  // namespace

TEST_CASE("an agent votes for no other coordinator until four fifths of T after the last lease grant came") {
  const Voter agent = attached();
  CHECK(agent.ends_ms(1'000) == 5'000);
  CHECK_FALSE(agent.may_vote(kNew, 4'999));
  CHECK(agent.may_vote(kOld, 4'999));
  CHECK(agent.may_vote(kNew, 5'000));
  CHECK_FALSE(agent.ends_ms(5'000));
}

TEST_CASE("a vote binds the agent from when it is sent") {
  Voter agent(kTimes);
  CHECK(agent.is_released(0));
  CHECK(agent.may_vote(kNew, 0));
  agent.vote(kNew, 100);
  CHECK(agent.coordinator() == kNew);
  CHECK(agent.ends_ms(100) == 4'100);
  CHECK_FALSE(agent.may_vote({6, 8}, 4'099));
  CHECK_THROWS_AS(agent.vote({6, 8}, 4'099), CheckFailed);
}

TEST_CASE("the times are those of the coordinator, once it has told them") {
  Voter agent(kTimes);
  agent.learns({20'000}, 0);
  CHECK(agent.is_released(0));
  agent.vote(kNew, 100);
  CHECK(agent.ends_ms(100) == 16'100);
  agent.learns({40'000}, 200);
  CHECK(agent.ends_ms(200) == 32'100);
  agent.learns({5'000}, 300);
  CHECK(agent.ends_ms(300) == 32'100);
}

TEST_CASE(
    "an agent that voted for a candidate comes back to its coordinator, but not after a lease grant of the candidate") {
  Voter agent = attached();
  agent.vote(kNew, 6'000);
  CHECK(agent.term() == 1);
  CHECK_FALSE(agent.may_vote(kOld, 9'999));
  CHECK(agent.may_vote(kOld, 10'000));
  CHECK(agent.lease_granted(kNew, 7'000));
  CHECK(agent.term() == 5);
  CHECK_FALSE(agent.may_vote(kOld, 60'000));
  CHECK(agent.may_vote(kNew, 60'000));
}

TEST_CASE("of two coordinators of one term an agent votes for one only") {
  Voter agent = attached();
  CHECK_FALSE(agent.may_vote({1, 9}, 60'000));
  CHECK(agent.may_vote(kOld, 60'000));
}

TEST_CASE("a lease grant of another coordinator renews no vote") {
  Voter agent = attached();
  CHECK_FALSE(agent.lease_granted(kNew, 2'000));
  CHECK(agent.ends_ms(2'000) == 5'000);
}

TEST_CASE("a resignation, or a proof of death, ends the vote at once") {
  Voter resigned = attached();
  resigned.resigned(kNew, 2'000);
  CHECK_FALSE(resigned.may_vote(kNew, 2'000));
  resigned.resigned(kOld, 2'000);
  CHECK(resigned.may_vote(kNew, 2'000));
  CHECK_FALSE(resigned.witnessed_death());
  Voter bereaved = attached();
  bereaved.died(kNew, kTraining, 2'000);
  CHECK_FALSE(bereaved.may_vote(kNew, 2'000));
  bereaved.died(kOld, kTraining, 2'000);
  CHECK(bereaved.may_vote(kNew, 2'000));
}

TEST_CASE("the vote for the coordinator in the agent's own process ends when that resigns") {
  Voter agent(kTimes);
  agent.vote_for_own({4, 7}, 0);
  CHECK_FALSE(agent.is_released(1'000'000'000));
  CHECK_FALSE(agent.ends_ms(0));
  agent.resigned({4, 7}, 100);
  CHECK(agent.is_released(100));
}

TEST_CASE("an agent has witnessed its coordinator's death if its lease holds and its workers run, until it votes") {
  Voter agent = attached();
  agent.died(kOld, kTraining, 2'000);
  REQUIRE(agent.witnessed_death());
  CHECK(*agent.witnessed_death() == WitnessedDeath{.round = kTraining.round, .term = 1, .rank = 2});
  agent.vote(kNew, 2'100);
  CHECK_FALSE(agent.witnessed_death());
  // A death that is heard of again, or after the vote has ended, is not witnessed.
  agent.died(kOld, kTraining, 2'200);
  CHECK_FALSE(agent.witnessed_death());
  for (const bool holds_lease : {false, true}) {
    Voter::Circumstances at = kTraining;
    at.holds_lease = holds_lease;
    at.runs_workers = !holds_lease;
    Voter other = attached();
    other.died(kOld, at, 2'000);
    CHECK(other.is_released(2'000));
    CHECK_FALSE(other.witnessed_death());
  }
  Voter late = attached();
  late.died(kOld, kTraining, 5'000);
  CHECK_FALSE(late.witnessed_death());
}

TEST_CASE("a coordinator that was taken for dead, and goes on, voids the witnessed death") {
  Voter agent = attached();
  agent.died(kOld, kTraining, 2'000);
  CHECK(agent.lease_granted(kOld, 2'100));
  CHECK_FALSE(agent.witnessed_death());
  CHECK_FALSE(agent.may_vote(kNew, 2'200));
}

TEST_CASE("after an end by time no lease of the other coordinator runs, and after a death until it is over by itself") {
  Voter agent = attached();
  CHECK(agent.others_may_run_for_ms(5'000) == 100);
  agent.died(kOld, kTraining, 2'000);
  CHECK(agent.others_may_run_for_ms(2'000) == kTimes.over_ms());
  CHECK(agent.others_may_run_for_ms(3'000) == kTimes.over_ms() - 1'000);
  CHECK(agent.others_may_run_for_ms(9'000) == 100);
  agent.vote(kNew, 9'000);
  CHECK(agent.others_may_run_for_ms(9'000) == 100);
}

TEST_CASE("an agent that votes once more, since its session broke, still tells how long other workers may run") {
  Voter bereaved = attached();
  bereaved.died(kOld, kTraining, 2'000);
  bereaved.vote(kNew, 2'100);
  CHECK(bereaved.others_may_run_for_ms(2'500) == kTimes.over_ms() - 500);
  bereaved.vote(kNew, 2'500);
  CHECK(bereaved.others_may_run_for_ms(2'600) == kTimes.over_ms() - 600);
}

TEST_CASE("leases that a coordinator grants unasked are bounded by no vote: others may run under them until they end") {
  Voter agent = attached();
  CHECK(agent.others_may_run_for_ms(5'000) == 100);
  agent.grants_unasked();
  CHECK(agent.others_may_run_for_ms(5'000) == kTimes.over_ms());
  SUBCASE("from when another one is voted for") {
    agent.vote(kNew, 6'000);
    CHECK(agent.others_may_run_for_ms(7'000) == kTimes.over_ms() - 1'000);
    agent.vote({6, 8}, 20'000);
    CHECK(agent.others_may_run_for_ms(20'000) == 100);
  }
  SUBCASE("unless it asks again") {
    agent.lease_granted(kOld, 6'000);
    CHECK(agent.others_may_run_for_ms(20'000) == 100);
  }
}
