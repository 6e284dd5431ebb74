#include "rendezvous/election/voter_set.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>

using namespace elastic::election;

namespace {

std::vector<int> ranks_of(unsigned set) {
  std::vector<int> ranks;
  for (int rank = 0; set >> rank != 0; ++rank) {
    if ((set >> rank & 1U) != 0) ranks.push_back(rank);
  }
  return ranks;
}

// The voter set that a candidate sees of a round of the coordinator on node `former` (-1: on none), after a voter has
// witnessed the death of the coordinator on node `dead` (-1: on none of the nodes; -2: no witnessed death).
VoterSet voter_set(int count, int former, int dead) {
  VoterSet of(count, former < 0 ? TieBreaker::nobody() : TieBreaker::node(former));
  if (dead >= 0) of.strike_off(dead);
  if (dead == -1) of.strike_off({});
  return of;
}

}  // namespace

TEST_CASE("a quorum is more than half of a round, or half of it with the tie-breaker") {
  const VoterSet three(3, TieBreaker::node(0));
  CHECK(three.is_quorum({1, 2}));
  CHECK_FALSE(three.is_quorum({0}));
  const VoterSet four(4, TieBreaker::node(0));
  CHECK(four.is_quorum({0, 3}));
  CHECK_FALSE(four.is_quorum({1, 3}));
  CHECK(four.is_quorum({1, 2, 3}));
  CHECK(VoterSet(4, TieBreaker::coordinator()).is_quorum({1, 3}));
  CHECK_FALSE(VoterSet(4, TieBreaker::coordinator()).is_quorum({3}));
  CHECK_FALSE(VoterSet(4, TieBreaker::nobody()).is_quorum({0, 3}));
  CHECK(VoterSet(1, TieBreaker::node(0)).is_quorum({0}));
  CHECK_FALSE(VoterSet(2, TieBreaker::coordinator()).is_quorum({}));
}

TEST_CASE("of two nodes the one that hosted the coordinator goes on alone, and the other one with a witnessed death") {
  CHECK(VoterSet(2, TieBreaker::node(0)).is_quorum({0}));
  CHECK_FALSE(VoterSet(2, TieBreaker::node(0)).is_quorum({1}));
  VoterSet certified(2, TieBreaker::node(0));
  certified.strike_off(0);
  CHECK(certified.size() == 1);
  CHECK(certified.is_quorum({1}));
  CHECK_FALSE(certified.is_quorum({0}));
}

TEST_CASE("with a witnessed death the first node that is left breaks the tie, unless the tie-breaker is left") {
  VoterSet of_host(3, TieBreaker::node(0));
  of_host.strike_off(0);
  CHECK(of_host.is_quorum({1}));
  CHECK_FALSE(of_host.is_quorum({2}));
  VoterSet of_another(3, TieBreaker::node(2));
  of_another.strike_off(0);
  CHECK(of_another.is_quorum({2}));
  CHECK_FALSE(of_another.is_quorum({1}));
  VoterSet off_the_nodes(2, TieBreaker::nobody());
  off_the_nodes.strike_off({});
  CHECK(off_the_nodes.size() == 2);
  CHECK(off_the_nodes.is_quorum({0}));
  CHECK_FALSE(off_the_nodes.is_quorum({1}));
}

TEST_CASE("after any death no two groups of living nodes are quorums of one round, whatever each knows of the death") {
  for (int count = 1; count <= 6; ++count) {
    for (int former = -1; former < count; ++former) {
      for (int dead = -2; dead < count; ++dead) {
        // Others may have witnessed an earlier death, or none. A coordinator on none of the nodes can only be dead if
        // it formed the round.
        for (int other = -2; other < count; ++other) {
          if ((dead == -1 || other == -1) && former != -1) continue;
          unsigned gone = 0;
          if (dead >= 0) gone |= 1U << dead;
          if (other >= 0) gone |= 1U << other;
          const VoterSet one = voter_set(count, former, dead);
          const VoterSet two = voter_set(count, former, other);
          for (unsigned a = 0; a < 1U << count; ++a) {
            const unsigned rest = ((1U << count) - 1) & ~a & ~gone;
            if ((a & gone) != 0 || !one.is_quorum(ranks_of(a))) continue;
            // If all members that are left are no quorum, no part of them is.
            CHECK_FALSE(two.is_quorum(ranks_of(rest)));
          }
        }
      }
    }
  }
}

TEST_CASE("a coordinator that forms the round itself may do with half, and nobody else has a quorum then") {
  for (int count = 1; count <= 6; ++count) {
    for (int former = -1; former < count; ++former) {
      for (unsigned a = 0; a < 1U << count; ++a) {
        // The coordinator's own node always votes for it.
        if (former >= 0 && (a >> former & 1U) == 0) continue;
        if (!VoterSet(count, TieBreaker::coordinator()).is_quorum(ranks_of(a))) continue;
        CHECK_FALSE(voter_set(count, former, -2).is_quorum(ranks_of(((1U << count) - 1) & ~a)));
      }
    }
  }
}
