#include "rendezvous/discovery/rival.h"

#include <doctest/doctest.h>

namespace elastic::discovery {
namespace {

TEST_CASE("of two jobs of one name the one with more rounds goes on, then the one that was born earlier") {
  const Rival fresh{.incarnation = 1, .birth_ms = 100};
  const Rival later{.incarnation = 2, .birth_ms = 200};
  CHECK(judge_rival(fresh, later) == Rivalry::kGoesOn);
  CHECK(judge_rival(later, fresh) == Rivalry::kGivesWay);

  const Rival runs{.incarnation = 3, .birth_ms = 300, .round = 0};
  CHECK(judge_rival(fresh, runs) == Rivalry::kGivesWay);
  CHECK(judge_rival(runs, fresh) == Rivalry::kGoesOn);

  const Rival has_run{.incarnation = 4, .birth_ms = 400, .round = 7};
  CHECK(judge_rival(runs, has_run) == Rivalry::kEnds);
  CHECK(judge_rival(has_run, runs) == Rivalry::kGoesOn);
}

TEST_CASE("jobs that were born at one time do not both go on, nor both end") {
  const Rival one{.incarnation = 1, .birth_ms = 100};
  const Rival other{.incarnation = 2, .birth_ms = 100};
  CHECK(judge_rival(one, other) == Rivalry::kGivesWay);
  CHECK(judge_rival(other, one) == Rivalry::kGoesOn);
}

TEST_CASE("coordinators of one incarnation are no rivals") {
  CHECK(judge_rival({.incarnation = 1, .birth_ms = 9}, {.incarnation = 1, .birth_ms = 1, .round = 8}) ==
        Rivalry::kGoesOn);
}

}  // namespace
}  // namespace elastic::discovery
