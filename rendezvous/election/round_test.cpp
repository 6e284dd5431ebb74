#include "rendezvous/election/round.h"

#include <doctest/doctest.h>

using namespace elastic::election;

namespace {

Round round_of(elastic::protocol::Term term, elastic::protocol::RoundNumber number) {
  return {.term = term, .number = number, .membership = number * 100 + term, .node_count = 3};
}

}  // namespace

TEST_CASE("a round of a later coordinator is later, whatever its number") {
  CHECK(round_of(1, 9) < round_of(2, 5));
  CHECK(round_of(2, 5) < round_of(2, 6));
  Round other = round_of(2, 5);
  other.membership = 7;
  CHECK(other != round_of(2, 5));
}

TEST_CASE("a node keeps the rounds that may be the last one, and its ranks in them, until one of them runs") {
  KnownRounds known;
  CHECK(known.rounds().empty());
  CHECK_FALSE(known.runs(round_of(1, 0)));
  known.hears(round_of(1, 0), 2, {});
  CHECK(known.runs(round_of(1, 0)));
  known.hears(round_of(1, 1), std::nullopt, {round_of(1, 0)});
  REQUIRE(known.rounds().size() == 2);
  CHECK(known.rounds()[0].rank == 2);
  CHECK(known.rounds()[0].has_run);
  CHECK_FALSE(known.rounds()[1].rank);
  CHECK_FALSE(known.rounds()[1].has_run);
  // A coordinator that needs two earlier rounds prepares another one; this node has never heard of the second of them.
  known.hears(round_of(2, 3), 0, {round_of(1, 0), round_of(1, 2)});
  REQUIRE(known.rounds().size() == 3);
  CHECK(known.rounds()[0].rank == 2);
  CHECK_FALSE(known.rounds()[1].rank);
  CHECK_FALSE(known.runs(round_of(1, 1)));
  CHECK(known.runs(round_of(2, 3)));
  REQUIRE(known.rounds().size() == 1);
  CHECK(known.rounds()[0].has_run);
}

TEST_CASE("an earlier round that is heard of late changes nothing") {
  KnownRounds known;
  known.hears(round_of(2, 3), 0, {});
  known.hears(round_of(1, 4), 1, {round_of(1, 3)});
  known.hears(round_of(2, 3), 2, {round_of(1, 3)});
  REQUIRE(known.rounds().size() == 1);
  CHECK(known.rounds()[0].rank == 0);
}
