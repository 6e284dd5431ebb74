#include "health/check/network_check.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::health;

TEST_CASE("a check's figures are its nodes by verdict, its time, and the slowest pair that passed") {
  HealthReport report{.round = 2, .phase_ms = {200, 300}, .exchange_bytes = 2'000'000};
  for (int rank = 0; rank < 4; ++rank) report.nodes.push_back({.rank = rank});
  report.pairs = {{.low = 0, .high = 1, .passed = true, .ms = 2},
                  {.low = 2, .high = 3, .passed = true, .ms = 4},
                  {.low = 0, .high = 3, .passed = false, .ms = 0, .why_not = "it was refused"}};
  report.bad_links.resize(1);
  const status::Check check = check_figures(report);
  CHECK(check.round == 2);
  CHECK(check.fit == 4);
  CHECK(check.faulty + check.slow + check.undetermined == 0);
  CHECK(check.bad_links == 1);
  CHECK(check.seconds == doctest::Approx(0.5));
  REQUIRE(check.slowest_busbw_bytes.has_value());
  CHECK(*check.slowest_busbw_bytes == doctest::Approx(2e6 / 0.004));
}

TEST_CASE("of one node alone there is no bandwidth") {
  HealthReport report;
  report.nodes.push_back({});
  CHECK(!check_figures(report).slowest_busbw_bytes);
}
