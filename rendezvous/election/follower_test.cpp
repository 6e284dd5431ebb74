#include "rendezvous/election/follower.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::election;
using namespace elastic::protocol;

namespace {

constexpr AgentId kOwn = 13;
constexpr AgentId kLost = 11;
constexpr LeaseTimes kTimes;
constexpr Welcome kWelcome{.term = 1, .incarnation = 7, .good_for_ms = 3000, .host = kLost};
constexpr Follower::Node kTrains{.holds_lease = true, .runs_workers = true, .belongs_to = 7};

// A follower of the coordinator on the node of rank 0 of a round of three, which runs.
struct InRound {
  Follower follower{kOwn};
  PrepareRound round{.round = 1,
                     .place = {.node_rank = 2, .node_count = 3},
                     .membership = 101,
                     .fence = {.term = 1},
                     .host_rank = 0,
                     .next_leaders = {{12, 1, "10.0.0.2", 2}, {kOwn, 2, "10.0.0.3", 3}, {kLost, 0, "10.0.0.1", 1}}};

  explicit InRound(bool refusal_is_proof = true) {
    round.refusal_is_proof = refusal_is_proof;
    REQUIRE(follower.welcomed(kWelcome, true, {}, 0).why_not == nullptr);
    follower.on_prepare_round(round, kWelcome, 0);
    REQUIRE(follower.lease_granted(kWelcome, {3000, true, true}, 0));
    follower.on_run_workers({.round = 1, .store = {}});
    follower.lost(kTimes, 100);
    REQUIRE(follower.is_searching());
  }
  // Asks at the lost coordinator's own peer port, which is done once while the node is bound by its vote.
  void ask_the_lost() {
    REQUIRE(follower.free_at_ms(100) == kTimes.vote_ms());
    REQUIRE(follower.next_peer(100).to.value_or(PeerTarget{}).agent == kLost);
  }
};

}  // namespace

TEST_CASE("a refused connection at the lost coordinator's port proves it dead, where that is proof: the vote is free") {
  for (const bool is_proof : {true, false}) {
    InRound node(is_proof);
    node.ask_the_lost();
    CHECK(node.follower.refused(kTrains, 110) == is_proof);
    CHECK(node.follower.free_at_ms(110) == (is_proof ? 0 : kTimes.vote_ms()));
    CHECK_FALSE(node.follower.refused(kTrains, 120));  // told once
  }
}

TEST_CASE("another process that answers at the lost coordinator's port proves it dead, and is not followed") {
  Welcome other = kWelcome;
  other.host = 99;
  InRound elsewhere;
  elsewhere.ask_the_lost();
  CHECK(elsewhere.follower.welcomed(other, false, kTrains, 110).why_not == nullptr);
  InRound node;
  node.ask_the_lost();
  const auto welcomed = node.follower.welcomed(other, true, kTrains, 110);
  REQUIRE(welcomed.why_not != nullptr);
  CHECK(welcomed.is_proof);
  CHECK(welcomed.has_refused);
  CHECK(node.follower.free_at_ms(110) == 0);
}

TEST_CASE("a candidate of another start of the job is not followed, and a coordinator of one is") {
  InRound node;
  (void)node.follower.next_peer(100);
  Welcome other{.term = 5, .incarnation = 8, .good_for_ms = 0, .host = 12};
  CHECK(node.follower.welcomed(other, false, kTrains, 110).why_not != nullptr);
  CHECK(node.follower.welcomed(other, false, {}, 110).why_not == nullptr);  // the node was in no round
  other.good_for_ms = 3000;
  CHECK(node.follower.welcomed(other, false, kTrains, 110).why_not == nullptr);
}

TEST_CASE("a round without next leaders binds the node to its coordinator: it searches for no other") {
  InRound node;
  CHECK_FALSE(node.follower.is_bound());
  node.round.round = 2;
  node.round.next_leaders.clear();
  node.follower.on_prepare_round(node.round, kWelcome, 200);
  CHECK(node.follower.is_bound());
  node.follower.lost(kTimes, 300);
  CHECK_FALSE(node.follower.is_searching());
}

TEST_CASE("a round is acknowledged if it needs a quorum of one before it") {
  InRound node;
  node.round.round = 2;
  CHECK_FALSE(node.follower.on_prepare_round(node.round, kWelcome, 200));
  node.round.before = {{.term = 1, .number = 1, .membership = 101, .node_count = 3, .tie_breaker = 0}};
  CHECK(node.follower.on_prepare_round(node.round, kWelcome, 200));
}
