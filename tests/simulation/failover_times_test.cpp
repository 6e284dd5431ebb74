// How soon a job goes on whose coordinator is lost.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/simulation/simulation.h"

namespace elastic::simulation {
namespace {

constexpr Ms kLostMs = 8'000;
constexpr Ms kLongestMs = 40'000;

// A job of four nodes that train, and may lose two.
Setup four_nodes(std::uint64_t seed) {
  Setup setup = plain_setup(seed, 4);
  setup.failover = Setup::Failover::kFromNode0;
  setup.training_ms = 1'000'000;
  setup.stubborn_percent = 0;
  setup.saving_percent = 0;
  for (NodeSetup& node : setup.nodes) {
    node.terms.min_nodes = 2;
    node.rules.failover = protocol::JobRules::Failover::kMajority;
    node.rejoin_ms = 2 * kLongestMs;
  }
  return setup;
}

// The same where every answer takes long, as on a machine that has too much to do: a way takes so long at most, and a
// welcome six of them.
Setup slow(std::uint64_t seed, Ms delay_ms) {
  Setup setup = four_nodes(seed);
  setup.loss_timeout_ms = 10'000;
  setup.longest_delay_ms = delay_ms;
  return setup;
}

bool has_coordinator(const Simulation& simulation) {
  return std::ranges::any_of(simulation.servers(), [](const Server& server) {
    const coordinator::Coordinator* found = server.find("alpha");
    return server.is_up() && found != nullptr && found->round() && found->mandate().is_counting() &&
           !found->mandate().stands();
  });
}

bool train_without_node_0(Simulation& simulation) {
  const std::vector<World>& worlds = simulation.workers().worlds();
  return worlds.size() > 1 && worlds.back().world_size == 3 && worlds.back().started == 3;
}

// From the faults, which strike the first node at once, until what is waited for is there.
Ms time_until(const Setup& setup, const std::vector<FaultKind>& faults,
              const std::function<bool(Simulation&)>& is_there) {
  FaultPlan plan;
  plan.calm_ms = 1'000'000;
  for (const FaultKind kind : faults) {
    plan.faults.push_back({.trigger = {.type = Trigger::Type::kTime, .at_ms = kLostMs},
                           .kind = kind,
                           .subject = 0,
                           .lasts_ms = 2 * kLongestMs,  // a host that is up again refuses connections
                           .comes_back = false});
  }
  Coverage coverage;
  Simulation simulation(setup, plan, coverage, nullptr);
  simulation.begin();
  (void)simulation.run_until([&] { return simulation.now_ms() > kLostMs; });
  REQUIRE_FALSE(has_coordinator(simulation));
  (void)simulation.run_until([&] { return is_there(simulation) || simulation.now_ms() > kLostMs + kLongestMs; });
  return simulation.now_ms() - kLostMs;
}

}  // namespace

TEST_CASE("the other nodes train again within the time that their coordinator's death needs to be certain") {
  struct Death {
    std::string what;
    std::vector<FaultKind> faults;
    Ms soonest_ms;  // with a loss timeout of 5 s
    Ms latest_ms;
  };
  const std::vector<Death> deaths{
      {"its launcher, and the guardian says so", {FaultKind::kCrashAgent}, 100, 300},
      {"all processes of its node", {FaultKind::kCrashGuardian, FaultKind::kCrashAgent}, 3'200, 3'500},
      // If the votes split, the others have to elect a second time.
      {"its host falls silent", {FaultKind::kCrashHost}, 4'500, 10'500},
  };
  for (const Death& death : deaths) {
    Ms soonest_ms = kLongestMs;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      CAPTURE(death.what);
      CAPTURE(seed);
      const Ms took_ms = time_until(four_nodes(seed), death.faults, train_without_node_0);
      CHECK(took_ms <= death.latest_ms);
      soonest_ms = std::min(soonest_ms, took_ms);
    }
    CHECK(soonest_ms <= death.soonest_ms);
  }
}

TEST_CASE("votes do not stay split where a welcome takes longer than a step from one successor to the next") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    CHECK(time_until(slow(seed, 150), {FaultKind::kCrashHost}, has_coordinator) < kLongestMs);
  }
}

}  // namespace elastic::simulation
