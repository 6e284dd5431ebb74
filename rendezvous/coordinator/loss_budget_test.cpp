#include "rendezvous/coordinator/loss_budget.h"

#include <doctest/doctest.h>

#include <limits>

#include "rendezvous/coordinator/limits.h"
#include "src/base/limits.h"

using namespace elastic;
using coordinator::LossBudget;
using coordinator::LossRules;

namespace {

constexpr std::int64_t kMinute = 60'000;

// How many hosts have a loss that still counts.
std::size_t remembered(const LossBudget& budget, std::int64_t now_ms) {
  return budget.records(SIZE_MAX, now_ms).size();
}

}  // namespace

TEST_CASE("a node that is lost three times in ten minutes is quarantined for five") {
  LossBudget budget(LossRules{});
  CHECK(!budget.charge("7", 0));
  CHECK(!budget.charge("7", 5 * kMinute));
  CHECK(budget.charge("7", 9 * kMinute) == 14 * kMinute);
  CHECK(budget.quarantined_until("7", 9 * kMinute) == 14 * kMinute);
  CHECK(budget.quarantined_until("7", 14 * kMinute - 1) == 14 * kMinute);
  CHECK(!budget.quarantined_until("7", 14 * kMinute));
  CHECK(!budget.quarantined_until("8", 9 * kMinute));
}

TEST_CASE("losses that lie further apart than the window do not add up") {
  LossBudget budget(LossRules{});
  for (std::int64_t i = 0; i < 100; ++i) CHECK(!budget.charge("7", i * 5 * kMinute));
  CHECK(budget.charge("7", 99 * 5 * kMinute + 1).has_value());
}

TEST_CASE("each node has losses of its own") {
  LossBudget budget(LossRules{});
  for (int i = 0; i < 100; ++i) CHECK(!budget.charge("node" + std::to_string(i), 0));
  CHECK(!budget.charge("node5", 1));
  CHECK(budget.charge("node5", 2).has_value());
  CHECK(!budget.quarantined_until("node6", 2));
}

TEST_CASE("each further time a node is quarantined twice as long, and counts its losses anew") {
  LossBudget budget(LossRules{});
  std::int64_t now_ms = 0;
  for (const std::int64_t minutes : {5, 10, 20, 40, 80}) {
    CHECK(!budget.charge("7", now_ms));
    CHECK(!budget.charge("7", now_ms + 1));
    CHECK(budget.charge("7", now_ms + 2) == now_ms + 2 + minutes * kMinute);
    now_ms += 2 + minutes * kMinute;
  }
}

TEST_CASE("a node that was let in and stayed for as long as it had been quarantined begins with the first span again") {
  LossBudget budget({.per_node = 1});
  CHECK(budget.charge("7", 0) == 5 * kMinute);
  CHECK(budget.charge("7", 5 * kMinute) == 15 * kMinute);
  CHECK(budget.charge("7", 25 * kMinute - 1) == 45 * kMinute - 1);
  CHECK(budget.charge("7", 65 * kMinute - 1) == 70 * kMinute - 1);
}

TEST_CASE("a span does not double beyond ten years") {
  LossBudget budget({.per_node = 1});
  std::int64_t now_ms = 0;
  for (int i = 0; i < 200; ++i) {
    const auto until_ms = budget.charge("7", now_ms);
    REQUIRE(until_ms.has_value());
    REQUIRE(*until_ms - now_ms <= limits::kMaxTimeoutSeconds * 1000);
    now_ms = *until_ms;
  }
}

TEST_CASE("a loss of a node that is quarantined says until when") {
  LossBudget budget({.per_node = 2});
  budget.charge("7", 0);
  CHECK(budget.charge("7", 0) == 5 * kMinute);
  CHECK(budget.charge("7", 1) == 5 * kMinute);
}

TEST_CASE("where no number of losses quarantines a node, none is remembered") {
  for (const int per_node : {0, -1}) {
    LossBudget budget({.per_node = per_node});
    for (int i = 0; i < 100; ++i) CHECK(!budget.charge("7", 0));
    CHECK(remembered(budget, 0) == 0);
  }
}

TEST_CASE("the job bears as many losses as it may have, and one more ends it") {
  LossBudget budget({.per_job = 3});
  for (int i = 0; i < 3; ++i) budget.count_loss();
  CHECK(!budget.spent());
  budget.count_loss();
  CHECK(budget.spent());
  CHECK(budget.losses() == 4);
}

TEST_CASE("by default a job bears ten times as many losses as a round has nodes at most") {
  CHECK(coordinator::with_default_bound({}, 4).per_job == 40);
  CHECK(coordinator::with_default_bound({.per_job = 7}, 4).per_job == 7);
  CHECK(coordinator::with_default_bound({.per_job = -1}, 4).per_job == -1);
  CHECK(coordinator::with_default_bound({}, 1'000'000'000).per_job == std::numeric_limits<int>::max());
}

TEST_CASE("a negative bound lets a job lose any number") {
  LossBudget budget({.per_job = -1});
  for (int i = 0; i < 10'000; ++i) budget.count_loss();
  CHECK(!budget.spent());
  budget.set_losses(std::numeric_limits<int>::max());
  budget.count_loss();
  CHECK(budget.losses() == std::numeric_limits<int>::max());
}

TEST_CASE("losses that agents have reported count as the job's own") {
  LossBudget budget({.per_job = 10});
  budget.set_losses(10);
  CHECK(!budget.spent());
  budget.count_loss();
  CHECK(budget.losses() == 11);
  CHECK(budget.spent());
}

TEST_CASE("names in any number take bounded memory, and those that are quarantined are remembered before others") {
  LossBudget budget(LossRules{});
  for (int i = 0; i < 3; ++i) budget.charge("flapping", 0);
  for (int i = 0; i < 3 * static_cast<int>(limits::kLossNodes); ++i) {
    budget.charge("node" + std::to_string(i), i / 100);
    if (i % 1000 == 0) REQUIRE(remembered(budget, i / 100) <= limits::kLossNodes);
  }
  CHECK(remembered(budget, 500) <= limits::kLossNodes);
  CHECK(remembered(budget, 500) > limits::kLossNodes / 2);
  for (int i = 0; i < 2; ++i)
    budget.charge("node49000", 500);  // it is one of the last names: its first loss still counts
  CHECK(budget.quarantined_until("node49000", 500).has_value());
  CHECK(budget.quarantined_until("flapping", 2000) == 5 * kMinute);
  // Hosts whose losses do not count any more are dropped first.
  for (int i = 0; i < static_cast<int>(limits::kLossNodes); ++i)
    budget.charge("late" + std::to_string(i), 30 * kMinute);
  CHECK(remembered(budget, 30 * kMinute) == limits::kLossNodes);
}

TEST_CASE("losses of one node in any number take bounded memory") {
  LossBudget budget({.per_node = std::numeric_limits<int>::max()});
  for (int i = 1; i < limits::kMaxLossesPerNode; ++i) REQUIRE(!budget.charge("7", 0));
  CHECK(budget.charge("7", 0).has_value());
}
