#include "src/report/root_cause.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace elastic;
using namespace elastic::report;

namespace {

constexpr int kHere = 1;

FailedWorker worker(int rank, std::int64_t written_ns, bool stopped = false, int node_rank = kHere) {
  FailedWorker worker;
  worker.rank = rank;
  worker.node_rank = node_rank;
  worker.wall_ms = 1'000'000;
  worker.stopped_by_us = stopped;
  worker.error_written_ns = written_ns;
  return worker;
}

std::vector<int> ranks_of(const std::vector<FailedWorker>& failures) {
  std::vector<int> ranks;
  for (const FailedWorker& one : failures) ranks.push_back(one.rank);
  return ranks;
}

std::vector<int> ordered(std::vector<FailedWorker> failures) {
  put_first_error_first(failures, kHere);
  return ranks_of(failures);
}

}  // namespace

TEST_CASE("the worker whose error was written first is the first failure, also if another ended first") {
  std::vector<FailedWorker> failures{worker(0, 900'000'000), worker(1, 800'000'000), worker(2, 950'000'000),
                                     worker(3, 700'000'000, true), worker(4, 0, true)};
  put_first_error_first(failures, kHere);
  CHECK(ranks_of(failures) == std::vector{3, 1, 0, 2, 4});
  CHECK(!failures[0].stopped_by_us);
  CHECK(failures[0].error_came_first);
  CHECK(!failures[1].error_came_first);
  CHECK(failures[0].wall_ms == 1'000'000 - 200);
  CHECK(failures[1].wall_ms == 1'000'000 - 100);
  CHECK(failures[4].stopped_by_us);
}

TEST_CASE("what was written at the same time, or later, changes no order") {
  CHECK(ordered({worker(0, 5), worker(1, 5), worker(2, 6, true)}) == std::vector{0, 1, 2});
  CHECK(ordered({worker(7, 0, true), worker(0, 5), worker(1, 4, true)}) == std::vector{7, 1, 0});
  CHECK(ordered({worker(7, 4, true), worker(0, 5)}) == std::vector{7, 0});
}

TEST_CASE("a first failure without an error file, or on another node, stays the first") {
  CHECK(ordered({worker(0, 0), worker(1, 4), worker(2, 3, true)}) == std::vector{0, 1, 2});
  CHECK(ordered({worker(0, 5, false, 0), worker(1, 4), worker(2, 3, true)}) == std::vector{0, 1, 2});
  CHECK(ordered({worker(0, 5), worker(1, 4, false, 0), worker(2, 3)}) == std::vector{2, 0, 1});
  CHECK(ordered({worker(0, 5, true)}) == std::vector{0});
  CHECK(ordered({}).empty());
}
