// How soon a job goes on whose coordinator is lost.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/simulation/random.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {
namespace {

constexpr Ms kLostMs = 8'000;
constexpr Ms kLongestMs = 40'000;
constexpr Ms kRenewalMs = 1'000;

// A job of four nodes that train, and may lose two. They renew their leases at moments of their own.
Setup four_nodes(std::uint64_t seed) {
  Setup setup = plain_setup(seed, 4);
  setup.failover = Setup::Failover::kFromNode0;
  Random random(seed);
  setup.longest_delay_ms = 1;
  setup.training_ms = 1'000'000;
  setup.stubborn_percent = 0;
  setup.saving_percent = 0;
  for (NodeSetup& node : setup.nodes) {
    node.starts_ms = random.range(0, kRenewalMs);
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
    return server.is_up() && found != nullptr && found->round() && found->leader().leads_by_votes();
  });
}

bool train_without_node_0(Simulation& simulation) {
  const std::vector<World>& worlds = simulation.workers().worlds();
  return worlds.size() > 1 && worlds.back().world_size == 3 && worlds.back().started == 3;
}

// The time from the last of the faults, which strike the first node one after the other, until `is_there`. `and_then`
// lets faults strike other nodes.
Ms time_until(
    const Setup& setup, const std::vector<FaultKind>& faults, const std::function<bool(Simulation&)>& is_there,
    const std::function<void(Simulation&)>& and_then = [](Simulation&) {}) {
  FaultPlan plan;
  plan.calm_ms = 1'000'000;
  Ms strikes_ms = kLostMs - std::ssize(faults);
  for (const FaultKind kind : faults) {
    plan.faults.push_back({.trigger = {.type = Trigger::Type::kTime, .at_ms = ++strikes_ms},
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
  and_then(simulation);
  (void)simulation.run_until([&] { return is_there(simulation) || simulation.now_ms() > kLostMs + kLongestMs; });
  return simulation.now_ms() - kLostMs;
}

}  // namespace

TEST_CASE("the other nodes train again within the time that their coordinator's death needs to be certain") {
  struct Death {
    std::string what;
    std::vector<FaultKind> faults;
    Ms latest_ms;  // with a loss timeout of 5 s
  };
  const std::vector<Death> deaths{
      {"its launcher, and the guardian says so", {FaultKind::kCrashAgent}, 300},
      {"all processes of its node", {FaultKind::kCrashGuardian, FaultKind::kCrashAgent}, 3'500},
      {"its host falls silent", {FaultKind::kCrashHost}, 4'500},
  };
  for (const Death& death : deaths) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      CAPTURE(death.what);
      CAPTURE(seed);
      CHECK(time_until(four_nodes(seed), death.faults, train_without_node_0) <= death.latest_ms);
    }
  }
}

TEST_CASE("votes do not stay split where two of the three nodes that are left do not reach each other") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const auto one = static_cast<std::size_t>(random.range(1, 3));
    const std::size_t other = one % 3 + 1;
    const auto cut = [&](Simulation& simulation) {
      simulation.network().cut(simulation.nodes()[one]->host(), simulation.nodes()[other]->host());
      if (random.chance(50))
        simulation.network().cut(simulation.nodes()[other]->host(), simulation.nodes()[one]->host());
    };
    CAPTURE(seed);
    CHECK(time_until(four_nodes(seed), {FaultKind::kCrashHost}, has_coordinator, cut) < 20'000);
  }
}

TEST_CASE("votes do not stay split where a welcome takes longer than a step from one next leader to another") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    CHECK(time_until(slow(seed, 150), {FaultKind::kCrashHost}, has_coordinator) < kLongestMs);
  }
}

TEST_CASE("votes are seldom split where a welcome takes longer than a host has to accept a connection") {
  int split = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    split += time_until(slow(seed, 100), {FaultKind::kCrashAgent}, has_coordinator) > 2'000 ? 1 : 0;
  }
  CHECK(split <= 4);
}

}  // namespace elastic::simulation
