// Measures the bytes that an agent, and the coordinator for it, keep allocated, by the number of nodes and rounds.
//   memory_per_node NODES ROUNDS      prints the bytes after 5 rounds and at the end; exit status 1: they exceed a
//   bound
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "tests/simulation/meter.h"
#include "tests/simulation/simulation.h"

using namespace elastic::simulation;

namespace {

// The most bytes that each agent may keep, and below the coordinator for each node (session, roster, rank slot).
constexpr double kMostOfAgent = 4 * 1024;
constexpr double kMostOfCoordinator = 1.5 * 1024;
// The most bytes for the job itself, whatever the number of nodes.
constexpr double kMostOfJob = 16 * 1024;
// How many bytes more than the fifth round the last one may have, for each node and for the job: a number may have one
// more digit, and other messages are under way. A leak of one word a round would be 8 bytes 45 times.
constexpr double kGrowthOfNode = 128;
constexpr double kGrowthOfJob = 4 * 1024;
constexpr int kFirstLook = 5;

// The header of each block: its size, and the part of the program that it belongs to.
struct alignas(16) Label {
  std::uint64_t size;
  Part part;
};
constinit std::array<std::int64_t, 3> in_use{};

std::int64_t of(Part part) { return in_use[static_cast<std::size_t>(part)]; }

Setup setup_of_many(int nodes, int rounds) {
  Setup setup = plain_setup(1, nodes);
  setup.loss_timeout_ms = 60'000;
  setup.steady = true;
  setup.training_ms = 10'000'000;
  setup.stubborn_percent = setup.saving_percent = 0;
  for (NodeSetup& node : setup.nodes) node.terms.max_restarts = rounds;
  return setup;
}

// Runs until all workers of the round have started, and all messages have arrived.
void until_running(Simulation& simulation, std::size_t round) {
  const auto running = [&] {
    const auto& worlds = simulation.workers().worlds();
    return worlds.size() == round && worlds.back().started == worlds.back().world_size;
  };
  const bool reached = simulation.run_until(running);
  const Ms rest_until_ms = simulation.now_ms() + 100;
  if (reached && simulation.run_until(
                     [&] { return simulation.timeline().empty() || simulation.timeline().next_ms() > rest_until_ms; }))
    return;
  std::fprintf(stderr, "memory_per_node: round %zu was not formed\n", round);
  std::exit(1);
}

struct Look {
  double agents = 0;
  double coordinator = 0;
};
Look look(int nodes) {
  const double agents =
      static_cast<double>(of(Part::kAgent)) + static_cast<double>(sizeof(elastic::agent::Agent)) * nodes;
  return {agents, static_cast<double>(of(Part::kCoordinator))};
}

bool at_most(const char* what, double bytes, double most) {
  if (bytes <= most) return true;
  std::fprintf(stderr, "memory_per_node: %s: %.0f bytes, more than %.0f\n", what, bytes, most);
  return false;
}

}  // namespace

void* operator new(std::size_t size) {
  void* block = std::malloc(size + sizeof(Label));
  if (block == nullptr) throw std::bad_alloc();
  auto* label = new (block) Label{size, running_part};
  in_use[static_cast<std::size_t>(running_part)] += static_cast<std::int64_t>(size);
  return label + 1;
}
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  Label* label = static_cast<Label*>(block) - 1;
  in_use[static_cast<std::size_t>(label->part)] -= static_cast<std::int64_t>(label->size);
  std::free(label);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

int main(int argc, char** argv) {
  const int nodes = argc == 3 ? std::atoi(argv[1]) : 0;
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (nodes < 2 || rounds <= kFirstLook) {
    std::fprintf(stderr, "usage: memory_per_node NODES ROUNDS (at least 2, and more than %d)\n", kFirstLook);
    return 2;
  }
  try {
    Coverage coverage;
    Simulation simulation(setup_of_many(nodes, rounds), {{}, 1'000'000'000}, coverage, nullptr);
    simulation.begin();
    Look first;
    for (int round = 1; round <= rounds; ++round) {
      until_running(simulation, static_cast<std::size_t>(round));
      if (round == kFirstLook) first = look(nodes);
      if (round < rounds) simulation.nodes()[static_cast<std::size_t>(round * 7 % nodes)]->crash_worker(0, {.code = 1});
    }
    const Look last = look(nodes);
    std::printf("{\"nodes\": %d, \"rounds\": %d, \"agent\": [%.0f, %.0f], \"coordinator\": [%.0f, %.0f]}\n", nodes,
                rounds, first.agents / nodes, last.agents / nodes, first.coordinator / nodes, last.coordinator / nodes);
    bool holds = true;
    for (const Look& seen : {first, last}) {
      holds = at_most("an agent", seen.agents / nodes, kMostOfAgent) && holds;
      holds = at_most("the coordinator", seen.coordinator, kMostOfJob + kMostOfCoordinator * nodes) && holds;
    }
    holds = at_most("an agent, since round 5", (last.agents - first.agents) / nodes, kGrowthOfNode) && holds;
    holds = at_most("the coordinator, since round 5", last.coordinator - first.coordinator,
                    kGrowthOfJob + kGrowthOfNode * nodes) &&
            holds;
    return holds ? 0 : 1;
  } catch (const Broken& broken) {
    std::fprintf(stderr, "memory_per_node: %s: %s\n", broken.what.c_str(), broken.text.c_str());
    return 1;
  }
}
