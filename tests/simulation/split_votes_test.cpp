// How soon a job has a coordinator again where every answer takes long, as on a machine that has too much to do.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/simulation/simulation.h"

namespace elastic::simulation {
namespace {

constexpr Ms kLossTimeoutMs = 10'000;
constexpr Ms kLostMs = 8'000;
constexpr Ms kLongestMs = 40'000;

// A job of four nodes that train, whose coordinator's host dies. So long is a way at most; a welcome takes six of them.
Setup slow(std::uint64_t seed, Ms delay_ms) {
  Setup setup = plain_setup(seed, 4);
  setup.failover = Setup::Failover::kFromNode0;
  setup.loss_timeout_ms = kLossTimeoutMs;
  setup.longest_delay_ms = delay_ms;
  setup.training_ms = 1'000'000;
  for (NodeSetup& node : setup.nodes) {
    node.terms.min_nodes = 2;
    node.rules.failover = protocol::JobRules::Failover::kMajority;
    node.rejoin_ms = 2 * kLongestMs;
  }
  return setup;
}

bool has_coordinator(const Simulation& simulation) {
  return std::ranges::any_of(simulation.servers(), [](const Server& server) {
    const coordinator::Coordinator* found = server.find("alpha");
    return server.is_up() && found != nullptr && found->round() && found->mandate().is_counting() &&
           !found->mandate().stands();
  });
}

// How long the job has none.
Ms without_coordinator(std::uint64_t seed, Ms delay_ms) {
  FaultPlan plan;
  plan.calm_ms = 1'000'000;
  plan.faults.push_back({.trigger = {.type = Trigger::Type::kTime, .at_ms = kLostMs},
                         .kind = FaultKind::kCrashHost,
                         .subject = 0,
                         .comes_back = false});
  Coverage coverage;
  Simulation simulation(slow(seed, delay_ms), plan, coverage, nullptr);
  simulation.begin();
  (void)simulation.run_until([&] { return simulation.now_ms() > kLostMs; });
  REQUIRE_FALSE(has_coordinator(simulation));
  (void)simulation.run_until([&] { return has_coordinator(simulation) || simulation.now_ms() > kLostMs + kLongestMs; });
  return simulation.now_ms() - kLostMs;
}

}  // namespace

TEST_CASE("votes do not stay split where a welcome takes longer than a step from one successor to the next") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    CHECK(without_coordinator(seed, 150) < kLongestMs);
  }
}

}  // namespace elastic::simulation
