#include "rendezvous/discovery/duplicate_job.h"

#include <doctest/doctest.h>

namespace elastic::discovery {
namespace {

TEST_CASE("of two jobs of one name the one with more rounds goes on, then the one that was born earlier") {
  const DuplicateJob fresh{.incarnation = 1, .birth_ms = 100};
  const DuplicateJob later{.incarnation = 2, .birth_ms = 200};
  CHECK(judge_duplicate_job(fresh, later) == Duplicate::kGoesOn);
  CHECK(judge_duplicate_job(later, fresh) == Duplicate::kGivesWay);

  const DuplicateJob runs{.incarnation = 3, .birth_ms = 300, .round = 0};
  CHECK(judge_duplicate_job(fresh, runs) == Duplicate::kGivesWay);
  CHECK(judge_duplicate_job(runs, fresh) == Duplicate::kGoesOn);

  const DuplicateJob has_run{.incarnation = 4, .birth_ms = 400, .round = 7};
  CHECK(judge_duplicate_job(runs, has_run) == Duplicate::kEnds);
  CHECK(judge_duplicate_job(has_run, runs) == Duplicate::kGoesOn);
}

TEST_CASE("jobs that were born at one time do not both go on, nor both end") {
  const DuplicateJob one{.incarnation = 1, .birth_ms = 100};
  const DuplicateJob other{.incarnation = 2, .birth_ms = 100};
  CHECK(judge_duplicate_job(one, other) == Duplicate::kGivesWay);
  CHECK(judge_duplicate_job(other, one) == Duplicate::kGoesOn);
}

TEST_CASE("coordinators of one incarnation are no duplicate jobs") {
  CHECK(judge_duplicate_job({.incarnation = 1, .birth_ms = 9}, {.incarnation = 1, .birth_ms = 1, .round = 8}) ==
        Duplicate::kGoesOn);
}

}  // namespace
}  // namespace elastic::discovery
