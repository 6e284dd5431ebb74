#include "cli/plan_parts.h"

#include <algorithm>

#include "cli/launch_plan_test_support.h"

using namespace elastic::cli;
using elastic::numa::Memory;

namespace {

using Cpus = std::vector<int>;

// Two NUMA nodes of two CPUs, and a GPU at each.
struct NumaTrial : Trial {
  NumaTrial() {
    host.topology = {.allowed = {0, 1, 2, 3},
                     .nodes = {{0, {0, 1}}, {1, {2, 3}}},
                     .core_of = {{0, 0}, {1, 1}, {2, 2}, {3, 3}},
                     .gpus = {{.address = "0000:1a:00.0", .node = 1}, {.address = "0000:1b:00.0", .node = 0}}};
    environment.push_back("OMP_NUM_THREADS=1");
  }
  std::string entry(const LaunchPlan& plan) const {
    const auto found = std::ranges::find(plan.entries, "NUMA binding", &PlanEntry::name);
    return found == plan.entries.end() ? "" : found->value + " (" + found->origin + ")";
  }
};

}  // namespace

TEST_CASE("without a flag nothing is bound") {
  const NumaTrial trial;
  const LaunchPlan plan = trial.good({"--nproc-per-node=2", "train.py"});
  CHECK(plan.settings.placements.empty());
  CHECK(trial.entry(plan).empty());
}

TEST_CASE("--numa-binding binds the CPUs of each worker and leaves its memory alone") {
  const NumaTrial trial;
  const LaunchPlan plan = trial.good({"--numa-binding=node", "--nproc-per-node=2", "train.py"});
  REQUIRE(plan.settings.placements.size() == 2);
  CHECK(plan.settings.placements[0].cpus == Cpus{2, 3});
  CHECK(plan.settings.placements[1].cpus == Cpus{0, 1});
  CHECK(plan.settings.placements[0].nodes.empty());
  CHECK(trial.entry(plan) == "node, by GPU (command line: --numa-binding=node)");
  CHECK(plan.warnings.empty());
}

TEST_CASE("--numa-affinity binds to the node and prefers its memory, unless --membind-policy says otherwise") {
  const NumaTrial trial;
  const auto first = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--nproc-per-node=2", "train.py"});
    return trial.good(flags).settings.placements.at(0);
  };
  CHECK(first({"--numa-affinity"}).cpus == Cpus{2, 3});
  CHECK(first({"--numa-affinity"}).memory == Memory::kPreferred);
  CHECK(first({"--numa-affinity"}).nodes == Cpus{1});
  CHECK(first({"--numa_affinity", "--membind_policy=bind"}).memory == Memory::kBound);
  CHECK(first({"--numa-affinity", "--membind-policy=none"}).nodes.empty());
  CHECK(first({"--numa-affinity", "--numa-binding=exclusive"}).cpus == Cpus{2, 3});
  CHECK(first({"--numa-affinity", "--numa-binding=exclusive"}).nodes == Cpus{1});
}

TEST_CASE("--membind-policy alone says that it needs --numa-affinity") {
  const NumaTrial trial;
  const LaunchPlan plan = trial.good({"--membind-policy=bind", "train.py"});
  CHECK(plan.settings.placements.empty());
  CHECK(plan.warnings == std::vector<std::string>{"--membind-policy=bind: it is only used with --numa-affinity"});
  CHECK(trial.good({"--membind-policy=bind", "--numa-affinity", "train.py"}).warnings.empty());
  CHECK(trial.good({"--membind-policy=none", "--numa-affinity", "train.py"}).warnings.empty());
  CHECK(trial.good({"--membind-policy=Bind", "--numa-affinity", "train.py"}).warnings ==
        std::vector<std::string>{"--membind-policy=Bind: it is none of bind, preferred and none, and binds no memory"});
}

TEST_CASE("without a GPU workers are bound by local rank") {
  NumaTrial trial;
  trial.host.topology.gpus.clear();
  const LaunchPlan plan = trial.good({"--numa-binding=node", "--nproc-per-node=4", "train.py"});
  CHECK(plan.settings.placements.at(1).cpus == Cpus{0, 1});
  CHECK(plan.settings.placements.at(2).cpus == Cpus{2, 3});
  CHECK(trial.entry(plan) == "node, by local rank (no NVIDIA GPU is visible) (command line: --numa-binding=node)");
}

TEST_CASE("one warning names the workers that cannot be bound as asked for, and why") {
  NumaTrial trial;
  trial.host.topology.allowed = {2};
  trial.host.topology.gpus.push_back({.address = "0000:1c:00.0", .node = 0});
  const LaunchPlan plan = trial.good({"--numa-binding=exclusive", "--nproc-per-node=3", "train.py"});
  CHECK(plan.warnings == std::vector<std::string>{
                             "--numa-binding=exclusive: the CPUs of local ranks 1-2 are not bound: elastic-run may use "
                             "CPU 2 only, and NUMA node 0 has 0-1"});
}

TEST_CASE("a worker's place is told in words") {
  CHECK(text_of({.cpus = {0, 1, 2, 8}}) == "CPUs 0-2, 8; memory of any NUMA node");
  CHECK(text_of({.cpus = {4}, .memory = Memory::kPreferred, .nodes = {1}}) == "CPU 4; memory of NUMA node 1 preferred");
  CHECK(text_of({.cpus = {4, 5}, .memory = Memory::kBound, .nodes = {0, 1}}) ==
        "CPUs 4-5; memory of NUMA nodes 0-1 only");
  CHECK(text_of(elastic::numa::Placement{}) == "not bound to CPUs; memory of any NUMA node");
}
