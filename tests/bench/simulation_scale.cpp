// What it takes to form a round of many nodes, and to form it again when one dies: the real coordinator, sessions
// and agents in one process, on a network where each way takes kHopMs.
//   simulation_scale NODES      prints one line of figures, as JSON
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/simulation/simulation.h"

using namespace elastic::simulation;

namespace {

// Long against all that hosts do by themselves, so that the time of an event tells its way.
constexpr Ms kHopMs = 100;

struct Figures {
  double messages = 0;  // each node's share, both directions
  double bytes = 0;
  double hops = 0;
  double cpu_ms = 0;
};

double cpu_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1000 + static_cast<double>(time.tv_usec) / 1000;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

// Until all workers of a round with so many nodes have started.
Figures until_running(Simulation& simulation, int workers, int nodes) {
  const double messages = static_cast<double>(simulation.network().messages());
  const double bytes = static_cast<double>(simulation.network().bytes());
  const Ms began_ms = simulation.now_ms();
  const double began_cpu_ms = cpu_ms();
  const bool reached = simulation.run_until([&] {
    const auto& worlds = simulation.workers().worlds();
    return !worlds.empty() && worlds.back().started == workers && worlds.back().world_size == workers;
  });
  if (!reached) {
    std::fprintf(stderr, "simulation_scale: no round of %d workers was formed\n", workers);
    std::exit(1);
  }
  return {(static_cast<double>(simulation.network().messages()) - messages) / nodes,
          (static_cast<double>(simulation.network().bytes()) - bytes) / nodes,
          static_cast<double>(simulation.now_ms() - began_ms) / kHopMs, cpu_ms() - began_cpu_ms};
}

Setup setup_of_many(int nodes) {
  Setup setup = plain_setup(1, nodes);
  setup.loss_timeout_ms = 60'000;
  setup.longest_delay_ms = kHopMs;
  setup.steady = true;
  setup.training_ms = 10'000'000;
  setup.stubborn_percent = setup.saving_percent = 0;
  for (NodeSetup& node : setup.nodes) {
    node.terms.min_nodes = nodes - 1;
    node.rules.scale_up = elastic::protocol::JobRules::ScaleUp::kNever;
  }
  return setup;
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc == 2 ? std::atoi(argv[1]) : 0;
  if (nodes < 2) {
    std::fprintf(stderr, "usage: simulation_scale NODES (at least 2)\n");
    return 2;
  }
  Coverage coverage;
  Simulation simulation(setup_of_many(nodes), {{}, 100'000'000}, coverage, nullptr);
  try {
    simulation.begin();
    const Figures form = until_running(simulation, nodes, nodes);
    simulation.nodes()[static_cast<std::size_t>(nodes) / 2]->crash_agent();
    const Figures again = until_running(simulation, nodes - 1, nodes);
    std::printf("{\"nodes\": %d", nodes);
    for (const auto& [name, figures] : {std::pair{"form", form}, std::pair{"again", again}}) {
      std::printf(", \"%s\": {\"messages\": %.2f, \"bytes\": %.0f, \"hops\": %.1f, \"cpu_ms\": %.0f}", name,
                  figures.messages, figures.bytes, figures.hops, figures.cpu_ms);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf(", \"memory_kib\": %ld}\n", usage.ru_maxrss);
  } catch (const Broken& broken) {
    std::fprintf(stderr, "simulation_scale: %s: %s\n", broken.what.c_str(), broken.text.c_str());
    return 1;
  }
  return 0;
}
