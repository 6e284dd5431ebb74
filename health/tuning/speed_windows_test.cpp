#include "health/tuning/climb.h"

#include <doctest/doctest.h>

using namespace elastic::tuning;

namespace {

// Steps on a clock of their own.
struct Steps {
  SpeedWindows windows;
  std::int64_t step = 0;
  std::int64_t at_ms = 1000;
  int source = 0;
  void make(int count, std::int64_t each_ms) {
    for (int i = 0; i < count; ++i) {
      ++step;
      at_ms += each_ms;
      windows.add({source, step, at_ms});
    }
  }
};

constexpr int kAll = static_cast<int>(kWindows + kSettlingWindows);

}  // namespace

TEST_CASE("a speed is known after the windows of a setting, of which the first does not count") {
  Steps steps;
  steps.make(1, 0);
  steps.make(5, 400);  // the loader starts
  CHECK(!steps.windows.speed());
  steps.make(10 * (kAll - 2), 200);
  CHECK(!steps.windows.speed());
  steps.make(10, 200);
  REQUIRE(steps.windows.speed());
  CHECK(steps.windows.speed()->median == doctest::Approx(5));
  CHECK(steps.windows.speed()->noise == doctest::Approx(0));
}

TEST_CASE("steps before a change do not count after it, however often they are told") {
  Steps steps;
  steps.make(10 * kAll + 1, 200);
  REQUIRE(steps.windows.speed());
  steps.windows.begin();
  CHECK(!steps.windows.speed());
  steps.windows.add({0, steps.step, steps.at_ms});
  steps.at_ms += 3'600'000;  // a long time until the next step is no part of it
  steps.make(1 + 20 * (kAll - 1) + 10, 100);
  CHECK(!steps.windows.speed());
  steps.make(10, 100);
  REQUIRE(steps.windows.speed());
  CHECK(steps.windows.speed()->median == doctest::Approx(10));
}

TEST_CASE("one long pause does not change the speed, and uneven steps are noise") {
  Steps steps;
  steps.make(11, 200);
  for (const int each_ms : {190, 200, 205, 210, 195}) steps.make(11, each_ms);
  steps.make(1, 15'000);  // an evaluation
  steps.make(5, 200);
  REQUIRE(steps.windows.speed());
  CHECK(steps.windows.speed()->median == doctest::Approx(4.9).epsilon(0.03));
  CHECK(steps.windows.speed()->noise > 0.05);
  CHECK(steps.windows.speed()->noise < 0.5);
}

TEST_CASE("a count that begins again goes on, and one of another source is measured anew") {
  Steps steps;
  steps.step = 10'000;
  steps.make(10 * kAll + 1, 200);
  steps.step = 0;  // the next epoch
  steps.make(5, 200);
  CHECK(steps.windows.speed()->median == doctest::Approx(5));
  steps.make(20 * kAll, 100);
  CHECK(steps.windows.speed()->median == doctest::Approx(10));
  steps.source = 1;
  steps.make(1, 200);
  CHECK(!steps.windows.speed());
}

TEST_CASE("a window has both time and steps enough") {
  Steps steps;
  steps.make(1, 0);
  steps.make(2 * kAll, 1'000'000);  // very slow steps
  CHECK(!steps.windows.speed());
  Steps quick;
  quick.make(1, 0);
  quick.make(1999, 1);  // very quick ones
  CHECK(!quick.windows.speed());
}
