#include "rendezvous/coordinator/attribution.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "src/base/test_random.h"

using namespace elastic;
using coordinator::LostNode;
using coordinator::order_by_cause;
using protocol::FailureKind;
using protocol::WorkerFailure;

namespace {

WorkerFailure failure(int rank, FailureKind kind, std::int64_t wall_ms, bool stopped_by_us = false) {
  WorkerFailure result;
  result.rank = rank;
  result.wall_ms = wall_ms;
  result.stopped_by_us = stopped_by_us;
  result.kind = kind;
  return result;
}

std::vector<int> ranks(std::vector<WorkerFailure> failures) {
  order_by_cause(failures);
  std::vector<int> result;
  for (const WorkerFailure& one : failures) result.push_back(one.rank);
  return result;
}

}  // namespace

TEST_CASE("what failed by itself comes before what ended after it was told to, be it killed and earlier") {
  CHECK(ranks({failure(0, FailureKind::kKilled, 1, true), failure(1, FailureKind::kCommunication, 9)}) ==
        std::vector{1, 0});
}

TEST_CASE("a kill explains a traceback, that any other end, and that a communication error, whatever the clocks say") {
  CHECK(ranks({failure(0, FailureKind::kCommunication, 1), failure(1, FailureKind::kOther, 2),
               failure(2, FailureKind::kTraceback, 3), failure(3, FailureKind::kKilled, 4)}) ==
        std::vector{3, 2, 1, 0});
}

TEST_CASE("of one kind the earlier is the cause, and at one moment the lower rank") {
  CHECK(ranks({failure(4, FailureKind::kTraceback, 7), failure(1, FailureKind::kTraceback, 9),
               failure(3, FailureKind::kTraceback, 7)}) == std::vector{3, 4, 1});
}

TEST_CASE("the rank for whose error file the round was stopped is the cause, though it ends last and clocks differ") {
  std::vector<WorkerFailure> failures = {failure(5, FailureKind::kKilled, 2), failure(4, FailureKind::kOther, 3, true),
                                         failure(1, FailureKind::kOther, 900)};
  failures.back().error_file_ms = 6;
  order_by_cause(failures, 1);
  CHECK(failures.at(0).rank == 1);
  CHECK(failures.at(1).rank == 5);
  // Rank 4 did not fail by itself.
  order_by_cause(failures, 4);
  CHECK(failures.at(0).rank == 5);
}

TEST_CASE("where nobody knows for whom the round was stopped, a rank failed when its error file stopped its node") {
  std::vector<WorkerFailure> failures = {failure(5, FailureKind::kOther, 8), failure(6, FailureKind::kOther, 4),
                                         failure(1, FailureKind::kOther, 900)};
  failures.back().error_file_ms = 6;
  CHECK(ranks(failures) == std::vector{6, 1, 5});
}

TEST_CASE("failures that nothing tells apart stay in order") {
  std::vector<WorkerFailure> failures(40, failure(0, FailureKind::kOther, 1));
  for (std::size_t i = 0; i < failures.size(); ++i) failures[i].pid = static_cast<std::int64_t>(100 - i);
  order_by_cause(failures);
  for (std::size_t i = 0; i < failures.size(); ++i) CHECK(failures[i].pid == static_cast<std::int64_t>(100 - i));
}

TEST_CASE("the cause is the same in every order of arrival") {
  TestRandom random(11);
  for (int i = 0; i < 500; ++i) {
    std::vector<WorkerFailure> failures;
    for (int rank = 0; rank < 8; ++rank) {
      failures.push_back(failure(rank, static_cast<FailureKind>(random() % 4), static_cast<std::int64_t>(random() % 3),
                                 random() % 2 == 0));
    }
    const std::vector<int> expected = ranks(failures);
    std::ranges::shuffle(failures, random);
    REQUIRE(ranks(failures) == expected);
  }
}

TEST_CASE("a lost node is named with its address and how it was lost") {
  CHECK(text(LostNode{2, "10.0.0.7", "its connection was reset"}) ==
        "node 2 (10.0.0.7) was lost: its connection was reset");
  CHECK(text(LostNode{2, "", "it is silent"}) == "node 2 was lost: it is silent");
  CHECK(text(LostNode{0, "h", ""}) == "node 0 (h) was lost");
  CHECK(text(LostNode{0, "a\x1b[2J", ""}) == "node 0 (a\\x1b[2J) was lost");
}
