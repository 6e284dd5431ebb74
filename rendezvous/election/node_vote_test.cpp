#include "rendezvous/election/node_vote.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::election;
using namespace elastic::protocol;

namespace {

constexpr AgentId kOwn = 5;
constexpr std::int64_t kVote = 4'000;

Welcome of(Term term, AgentId host = 1) { return {.term = term, .incarnation = 7, .host = host}; }

PrepareRound round(RoundNumber number, int rank) {
  return {
      .round = number, .place = {rank, 3, 0, 3, 0, 3}, .membership = number + 100U, .fence = {0, 1}, .host_rank = 0};
}

}  // namespace

TEST_CASE("the first lease acknowledgement of a session has the node's voter state") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1), 0);
  vote.hears(round(0, 2), 7);
  vote.runs(0);
  const auto first = vote.lease_granted(of(1), 0);
  REQUIRE(first);
  REQUIRE(first->voter_state);
  REQUIRE(first->voter_state->rounds.size() == 1);
  CHECK(first->voter_state->rounds[0].rank == 2);
  CHECK(first->voter_state->rounds[0].has_run);
  const auto second = vote.lease_granted(of(1), 1'000);
  REQUIRE(second);
  CHECK_FALSE(second->voter_state);
  vote.welcomed(of(1), 2'000);
  CHECK(vote.lease_granted(of(1), 2'000)->voter_state);
}

TEST_CASE("a node votes for one coordinator at a time, until its vote is over by time") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1), 0);
  CHECK(vote.lease_granted(of(1), 0));
  vote.welcomed(of(2, 3), 1'000);
  CHECK_FALSE(vote.lease_granted(of(2, 3), 1'000));
  CHECK_FALSE(vote.lease_granted(of(2, 3), kVote - 1));
  CHECK(vote.lease_granted(of(2, 3), kVote));
  CHECK_FALSE(vote.lease_granted(of(1), kVote));
}

TEST_CASE("a node's vote is over when its coordinator has resigned, or goes on under a later term itself") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1), 0);
  CHECK(vote.lease_granted(of(1), 0));
  CHECK(vote.lease_granted(of(2), 1)->voter_state);
  vote.resigned(of(2), 2);
  CHECK(vote.lease_granted(of(3, 3), 2));
}

TEST_CASE("a node that has said that it is done and leaves votes for no other one, unless that one is gone") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1), 0);
  CHECK(vote.lease_granted(of(1), 0));
  vote.leaves(of(1));
  CHECK(vote.has_left());
  CHECK(vote.lease_granted(of(1), 1'000));
  vote.welcomed(of(2, 3), 20'000);
  SUBCASE("it was silent") { CHECK_FALSE(vote.lease_granted(of(2, 3), 20'000)); }
  SUBCASE("it was silent, and the node has said the same to the next one") {
    vote.leaves(of(2, 3));
    CHECK_FALSE(vote.lease_granted(of(2, 3), 20'000));
  }
  SUBCASE("it goes on under a later term") { CHECK(vote.lease_granted(of(2), 20'000)); }
  SUBCASE("it has not let the node go") {
    vote.hears(round(1, 0), 7);
    CHECK(vote.lease_granted(of(2, 3), 20'000));
  }
  SUBCASE("it has resigned") {
    vote.resigned(of(1), 2'000);
    CHECK_FALSE(vote.has_left());
    CHECK(vote.lease_granted(of(2, 3), 20'000));
  }
  SUBCASE("its process has ended") {
    CHECK(vote.died(0, true, false, 2'000));
    CHECK(vote.lease_granted(of(2, 3), 20'000));
  }
}

TEST_CASE("a vote for a later coordinator of the same process says how long others may run under the earlier one") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1), 0);
  CHECK(vote.lease_granted(of(1), 0));
  vote.welcomed(of(2), 500);
  const auto ack = vote.lease_granted(of(2), 500);
  REQUIRE(ack);
  CHECK(ack->voter_state->others_may_run_for_ms == LeaseTimes{}.over_ms());
}

TEST_CASE("what a node has heard of between two rounds is in its voter state") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1), 0);
  vote.hears(round(0, 2), 7);
  vote.runs(0);
  PrepareRound next = round(1, 1);
  next.before = {{1, 0, 100, 3, 0}};
  vote.hears(next, 7);
  vote.runs(0);  // an old order
  const auto rounds = vote.lease_granted(of(1), 0)->voter_state->rounds;
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].has_run);
  CHECK(rounds[1].rank == 1);
  CHECK_FALSE(rounds[1].has_run);
  vote.runs(1);
  CHECK(vote.rounds().rounds().size() == 1);
}

TEST_CASE("a voter state has no rounds of another start of the job, and the first round of this one forgets them") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1), 0);
  vote.hears(round(3, 2), 7);
  vote.runs(3);
  Welcome another = of(2);
  another.incarnation = 8;
  vote.welcomed(another, 0);
  const auto answer = vote.lease_granted(another, 0);
  REQUIRE(answer);
  CHECK(answer->voter_state->rounds.empty());
  vote.hears(round(0, 1), 8);
  REQUIRE(vote.rounds().rounds().size() == 1);
  CHECK(vote.rounds().rounds()[0].round.number == 0);
}

TEST_CASE("terms of another start of the job do not matter") {
  NodeVote vote(kOwn);
  vote.welcomed(of(50), 0);
  CHECK(vote.lease_granted(of(50), 0));
  Welcome another = of(1, 3);
  another.incarnation = 8;
  vote.welcomed(another, kVote);
  CHECK(vote.lease_granted(another, kVote));
}

TEST_CASE("the vote for the coordinator in the node's own process has no end by time") {
  NodeVote vote(kOwn);
  vote.welcomed(of(1, kOwn), 0);
  CHECK(vote.lease_granted(of(1, kOwn), 0));
  vote.welcomed(of(2, 3), 60'000);
  CHECK_FALSE(vote.lease_granted(of(2, 3), 60'000));
  CHECK(vote.votes_for_own());
  SUBCASE("as it says") { vote.resigned(of(1, kOwn), 60'000); }
  SUBCASE("as the node sees, which it could not tell") { vote.own_is_over(60'000); }
  CHECK_FALSE(vote.votes_for_own());
  CHECK(vote.lease_granted(of(2, 3), 60'000));
}
