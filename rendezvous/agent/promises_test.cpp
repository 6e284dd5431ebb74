#include "rendezvous/agent/promises.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::agent;
using namespace elastic::protocol;

namespace {

constexpr AgentId kOwn = 5;
constexpr std::int64_t kPromise = 4'000;

Welcome of(Term term, AgentId host = 1) { return {.term = term, .incarnation = 7, .host = host}; }

PrepareRound round(RoundNumber number, int rank) {
  return {
      .round = number, .place = {rank, 3, 0, 3, 0, 3}, .membership = number + 100U, .fence = {0, 1}, .host_rank = 0};
}

}  // namespace

TEST_CASE("the first promise of a session has the node's testimony") {
  Promises promises(kOwn);
  promises.welcomed(of(1), 0);
  promises.hears(round(0, 2), 7);
  promises.runs(0);
  const auto first = promises.kept(of(1), 0);
  REQUIRE(first);
  REQUIRE(first->testimony);
  REQUIRE(first->testimony->rounds.size() == 1);
  CHECK(first->testimony->rounds[0].rank == 2);
  CHECK(first->testimony->rounds[0].has_run);
  const auto second = promises.kept(of(1), 1'000);
  REQUIRE(second);
  CHECK_FALSE(second->testimony);
  promises.welcomed(of(1), 2'000);
  CHECK(promises.kept(of(1), 2'000)->testimony);
}

TEST_CASE("a node supports one coordinator at a time, until its promise is over by time") {
  Promises promises(kOwn);
  promises.welcomed(of(1), 0);
  CHECK(promises.kept(of(1), 0));
  promises.welcomed(of(2, 3), 1'000);
  CHECK_FALSE(promises.kept(of(2, 3), 1'000));
  CHECK_FALSE(promises.kept(of(2, 3), kPromise - 1));
  CHECK(promises.kept(of(2, 3), kPromise));
  CHECK_FALSE(promises.kept(of(1), kPromise));
}

TEST_CASE("or until that coordinator has resigned, also by being of a later term itself") {
  Promises promises(kOwn);
  promises.welcomed(of(1), 0);
  CHECK(promises.kept(of(1), 0));
  CHECK(promises.kept(of(2), 1)->testimony);
  promises.resigned(of(2), 2);
  CHECK(promises.kept(of(3, 3), 2));
}

TEST_CASE("a node that has said that it is done and leaves votes for no other one, unless that one is gone") {
  Promises promises(kOwn);
  promises.welcomed(of(1), 0);
  CHECK(promises.kept(of(1), 0));
  promises.leaves(of(1));
  CHECK(promises.has_left());
  CHECK(promises.kept(of(1), 1'000));
  promises.welcomed(of(2, 3), 20'000);
  SUBCASE("it was silent") { CHECK_FALSE(promises.kept(of(2, 3), 20'000)); }
  SUBCASE("it was silent, and the node has said the same to the next one") {
    promises.leaves(of(2, 3));
    CHECK_FALSE(promises.kept(of(2, 3), 20'000));
  }
  SUBCASE("it goes on under a later term") { CHECK(promises.kept(of(2), 20'000)); }
  SUBCASE("it has not let the node go") {
    promises.hears(round(1, 0), 7);
    CHECK(promises.kept(of(2, 3), 20'000));
  }
  SUBCASE("it has resigned") {
    promises.resigned(of(1), 2'000);
    CHECK_FALSE(promises.has_left());
    CHECK(promises.kept(of(2, 3), 20'000));
  }
  SUBCASE("its process has ended") {
    CHECK(promises.died(0, true, false, 2'000));
    CHECK(promises.kept(of(2, 3), 20'000));
  }
}

TEST_CASE("a vote for a later coordinator of the same process says how long others may run under the earlier one") {
  Promises promises(kOwn);
  promises.welcomed(of(1), 0);
  CHECK(promises.kept(of(1), 0));
  promises.welcomed(of(2), 500);
  const auto vote = promises.kept(of(2), 500);
  REQUIRE(vote);
  CHECK(vote->testimony->others_may_run_for_ms == LeaseTimes{}.over_ms());
}

TEST_CASE("what a node has heard of between two rounds goes with its testimony") {
  Promises promises(kOwn);
  promises.welcomed(of(1), 0);
  promises.hears(round(0, 2), 7);
  promises.runs(0);
  PrepareRound next = round(1, 1);
  next.before = {{1, 0, 100, 3, 0}};
  promises.hears(next, 7);
  promises.runs(0);  // an old order
  const auto rounds = promises.kept(of(1), 0)->testimony->rounds;
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].has_run);
  CHECK(rounds[1].rank == 1);
  CHECK_FALSE(rounds[1].has_run);
  promises.runs(1);
  CHECK(promises.rounds().rounds().size() == 1);
}

TEST_CASE("rounds of another start of the job are no testimony for this one, and are forgotten with its first round") {
  Promises promises(kOwn);
  promises.welcomed(of(1), 0);
  promises.hears(round(3, 2), 7);
  promises.runs(3);
  Welcome another = of(2);
  another.incarnation = 8;
  promises.welcomed(another, 0);
  const auto answer = promises.kept(another, 0);
  REQUIRE(answer);
  CHECK(answer->testimony->rounds.empty());
  promises.hears(round(0, 1), 8);
  REQUIRE(promises.rounds().rounds().size() == 1);
  CHECK(promises.rounds().rounds()[0].round.number == 0);
}

TEST_CASE("terms of another start of the job do not matter") {
  Promises promises(kOwn);
  promises.welcomed(of(50), 0);
  CHECK(promises.kept(of(50), 0));
  Welcome another = of(1, 3);
  another.incarnation = 8;
  promises.welcomed(another, kPromise);
  CHECK(promises.kept(another, kPromise));
}

TEST_CASE("the promise to the coordinator in the node's own process has no end by time") {
  Promises promises(kOwn);
  promises.welcomed(of(1, kOwn), 0);
  CHECK(promises.kept(of(1, kOwn), 0));
  promises.welcomed(of(2, 3), 60'000);
  CHECK_FALSE(promises.kept(of(2, 3), 60'000));
  CHECK(promises.supports_own());
  SUBCASE("as it says") { promises.resigned(of(1, kOwn), 60'000); }
  SUBCASE("as the node sees, which it could not tell") { promises.own_is_over(60'000); }
  CHECK_FALSE(promises.supports_own());
  CHECK(promises.kept(of(2, 3), 60'000));
}
