#include "src/base/check_pace.h"

#include <doctest/doctest.h>

#include <string>

#include "src/base/check.h"
#include "src/base/check_test_support.h"

using namespace elastic;

TEST_CASE("a check of few things is due after each event, and one of many so seldom that it costs the same per event") {
  CheckPace<16> pace;
  const auto checks = [&](std::size_t size) {
    int count = 0;
    for (int event = 0; event < 10'000; ++event) count += pace.is_due(size) ? 1 : 0;
    return count;
  };
  CHECK(checks(0) == 10'000);
  CHECK(checks(16) == 10'000);
  CHECK(checks(17) == 5'000);
  CHECK(checks(1'600) == 100);
  CHECK(checks(1'600'000) == 0);
}

TEST_CASE("a check that fails names what does not hold") {
  const bool holds = false;
  CHECK(failed_check([&] { ELASTIC_CHECK(holds); }) == "holds");
  CHECK(failed_check([&] { ELASTIC_CHECK(!holds); }).empty());
}
