// What it takes to form a round of many nodes, and to form it again when one dies: the real coordinator, sessions
// and agents in one process, on a network where each way takes kHopMs.
//   simulation_scale NODES      prints one line of figures, as JSON
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/simulation/world.h"

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
Figures until_running(World& world, int workers, int nodes) {
  const double messages = static_cast<double>(world.network().messages());
  const double bytes = static_cast<double>(world.network().bytes());
  const Ms began_ms = world.now_ms();
  const double began_cpu_ms = cpu_ms();
  const bool reached = world.run_until([&] {
    const auto& trainings = world.workers().trainings();
    return !trainings.empty() && trainings.back().started == workers && trainings.back().world_size == workers;
  });
  if (!reached) {
    std::fprintf(stderr, "simulation_scale: no round of %d workers was formed\n", workers);
    std::exit(1);
  }
  return {(static_cast<double>(world.network().messages()) - messages) / nodes,
          (static_cast<double>(world.network().bytes()) - bytes) / nodes,
          static_cast<double>(world.now_ms() - began_ms) / kHopMs, cpu_ms() - began_cpu_ms};
}

Shape shape_of_many(int nodes) {
  Shape shape = plain_shape(1, nodes);
  shape.loss_timeout_ms = 60'000;
  shape.longest_delay_ms = kHopMs;
  shape.steady = true;
  shape.training_ms = 10'000'000;
  shape.stubborn_percent = shape.saving_percent = 0;
  for (NodeShape& node : shape.nodes) {
    node.terms.min_nodes = nodes - 1;
    node.rules.scale_up = elastic::protocol::JobRules::ScaleUp::kNever;
  }
  return shape;
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc == 2 ? std::atoi(argv[1]) : 0;
  if (nodes < 2) {
    std::fprintf(stderr, "usage: simulation_scale NODES (at least 2)\n");
    return 2;
  }
  Coverage coverage;
  World world(shape_of_many(nodes), {{}, 100'000'000}, coverage, nullptr);
  try {
    world.begin();
    const Figures form = until_running(world, nodes, nodes);
    world.nodes()[static_cast<std::size_t>(nodes) / 2]->crash_agent();
    const Figures again = until_running(world, nodes - 1, nodes);
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
