#include "health/progress/rank_progress.h"

#include <doctest/doctest.h>

using namespace elastic::progress;

TEST_CASE("steps a second are counted over the last steps") {
  StepRate rate;
  CHECK_FALSE(rate.millisteps_per_second(0));
  rate.add(10, 1000);
  CHECK_FALSE(rate.millisteps_per_second(1000));
  for (int i = 1; i <= 100; ++i) rate.add(10 + i, 1000 + i * 500);
  CHECK(rate.millisteps_per_second(51'000) == 2000);
  // Ten times as fast: soon only that counts.
  for (int i = 1; i <= 1000; ++i) rate.add(110 + i, 51'000 + i * 50);
  CHECK(rate.millisteps_per_second(101'000) == 20'000);
}

TEST_CASE("a step that does not come makes the rate fall") {
  StepRate rate;
  for (int i = 0; i <= 10; ++i) rate.add(i, i * 1000);
  CHECK(rate.millisteps_per_second(10'000) == 1000);
  CHECK(rate.millisteps_per_second(11'000) == 1000);
  CHECK(rate.millisteps_per_second(21'000) == 500);
  CHECK(rate.millisteps_per_second(1'000'000) < 12);
}

TEST_CASE("steps that begin again begin a new rate") {
  StepRate rate;
  rate.add(1000, 0);
  rate.add(2000, 10'000);
  rate.add(1, 20'000);
  CHECK_FALSE(rate.millisteps_per_second(20'000));
  rate.add(6, 25'000);
  CHECK(rate.millisteps_per_second(25'000) == 1000);
}
