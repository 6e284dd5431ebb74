#include "health/judge/judge.h"

#include <doctest/doctest.h>

using namespace elastic::health;

namespace {

enum Step { kOpen, kCompute, kGather };
constexpr GpuStanding kWell = {};
constexpr GpuStanding kUnhealthy = {.says_nothing = true};
constexpr GpuStanding failed(int step) { return {.failed_in = step}; }

}  // namespace

TEST_CASE("a GPU test that fails in the same step on every node is no node's fault") {
  for (const int step : {kOpen, kCompute, kGather}) {
    CHECK(step_that_failed_everywhere({failed(step), failed(step)}) == step);
    CHECK(step_that_failed_everywhere({failed(step), failed(step), failed(step)}) == step);
  }
}

TEST_CASE("a GPU test that passes somewhere, or fails in other steps, is the fault of those where it fails") {
  const GpuStanding opens = failed(kOpen), computes = failed(kCompute);
  CHECK(!step_that_failed_everywhere({opens, kWell}));
  CHECK(!step_that_failed_everywhere({kWell, opens, opens, opens}));
  CHECK(!step_that_failed_everywhere({opens, computes}));
  CHECK(!step_that_failed_everywhere({kWell, kWell}));
  CHECK(!step_that_failed_everywhere({}));
}

TEST_CASE("of one node alone nobody knows whether its GPU test is at fault") {
  CHECK(!step_that_failed_everywhere({failed(kOpen)}));
}

TEST_CASE("nodes with other faults say nothing of the GPU test of the others") {
  const GpuStanding gathers = failed(kGather);
  CHECK(step_that_failed_everywhere({kUnhealthy, gathers, gathers}) == kGather);
  CHECK(step_that_failed_everywhere({gathers, {.says_nothing = true, .failed_in = kOpen}, gathers}) == kGather);
  CHECK(!step_that_failed_everywhere({kUnhealthy, gathers}));
  CHECK(!step_that_failed_everywhere({kUnhealthy, kUnhealthy}));
}

TEST_CASE("NCCL that works between no two nodes is no node's fault, unless it brought wrong bytes") {
  using enum Gathering;
  CHECK(no_gathering_worked({kFailed}));
  CHECK(no_gathering_worked({kNone, kFailed, kFailed, kNone}));
  CHECK(!no_gathering_worked({kFailed, kPassed, kFailed}));
  CHECK(!no_gathering_worked({kFailed, kDefect}));
  CHECK(!no_gathering_worked({kDefect}));
  CHECK(!no_gathering_worked({kNone, kNone}));
  CHECK(!no_gathering_worked({}));
}
