#include "health/tuning/climb.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

using namespace elastic::tuning;

namespace {

constexpr std::int64_t kNoLimit = 1000;

struct Found {
  std::int64_t value = 0;
  int changes = 0;
};

// Climbs from `start` where a value has this speed.
Found climbed(std::int64_t start, const std::function<double(double)>& speed, std::int64_t limit = kNoLimit) {
  Climb climb;
  climb.begin(start, limit);
  Found found;
  while (const auto next = climb.next()) {
    ++found.changes;
    CHECK(*next > start);
    climb.judge({speed(static_cast<double>(climb.value()))}, {speed(static_cast<double>(*next))});
  }
  CHECK(!climb.why_over().empty());
  found.value = climb.value();
  return found;
}

// A batch takes a loader 0.4 s; more loaders than `best` disturb each other.
std::function<double(double)> sleeping(double best) {
  return [best](double workers) { return workers <= best ? workers / 0.4 : best / 0.4 * (1 - 0.1 * (workers - best)); };
}

}  // namespace

TEST_CASE("the best number of loaders is found within five changes, from below and from where it is") {
  for (const int best : {1, 2, 3, 4, 6, 8, 12, 16}) {
    const Found found = climbed(1, sleeping(best));
    CAPTURE(best);
    CHECK(found.value == best);
    CHECK(found.changes <= 5);
    CHECK(climbed(best, sleeping(best)).value == best);
  }
}

TEST_CASE("a value is doubled no further than it helps") {
  const Found found = climbed(1, [](double workers) { return std::min(workers / 0.4, 10.0); });
  CHECK(found.value == 4);
  CHECK(found.changes == 3);  // 2, 4, and 8, which is no faster
}

TEST_CASE("where nothing helps the value that the loader began with holds") {
  CHECK(climbed(4, [](double) { return 10; }).value == 4);
  CHECK(climbed(4, [](double workers) { return 100 / workers; }).value == 4);
  CHECK(climbed(0, [](double) { return 10; }).value == 0);
}

TEST_CASE("a loader that loads by itself gets a first process, and no value passes the bound") {
  CHECK(climbed(0, sleeping(2)).value == 2);
  CHECK(climbed(1, sleeping(64), 6).value == 6);
  const Found bound = climbed(4, sleeping(64), 4);
  CHECK(bound.value == 4);
  CHECK(bound.changes == 0);
}

TEST_CASE("a speed has risen only if it rose by more than twice its noise, and by three in a hundred") {
  Climb climb;
  climb.begin(2, kNoLimit);
  SUBCASE("within the noise before it") { CHECK(!climb.judge({100, 6}, {111, 0})); }
  SUBCASE("within the noise after it") { CHECK(!climb.judge({100, 0}, {111, 6})); }
  SUBCASE("beyond the noise") { CHECK(climb.judge({100, 5}, {111, 5})); }
  SUBCASE("without noise, less than three in a hundred") { CHECK(!climb.judge({100, 0}, {102.9, 0})); }
  SUBCASE("without noise") { CHECK(climb.judge({100, 0}, {103.1, 0})); }
}

TEST_CASE("after a value that was too large the next smaller one holds, one after the other") {
  Climb climb;
  climb.begin(2, kNoLimit);
  CHECK(climb.judge({10}, {20}));
  CHECK(climb.judge({20}, {40}));
  CHECK(climb.value() == 8);
  CHECK(climb.retreat("a rank died"));
  CHECK(climb.value() == 4);
  CHECK(!climb.next());
  CHECK(climb.retreat("a rank died"));
  CHECK(climb.value() == 2);
  CHECK(!climb.retreat("a rank died"));
  CHECK(climb.value() == 2);
}

TEST_CASE("from a value between two that were kept the smaller one is what is gone back to") {
  Climb climb;
  climb.begin(2, kNoLimit);
  CHECK(climb.judge({10}, {20}));  // 4
  CHECK(!climb.judge({20}, {5}));  // 8 is much slower: 3 is tried
  CHECK(climb.next() == 3);
  CHECK(climb.judge({20}, {30}));
  CHECK(climb.retreat("a rank died"));
  CHECK(climb.value() == 2);
}
