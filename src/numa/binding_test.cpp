#include "src/numa/binding.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

using namespace elastic::numa;

namespace {

using Cpus = std::vector<int>;

// Two sockets of two NUMA nodes of four CPUs: node 0 has the cores 0 and 1 with the CPUs 0, 1, 8, 9, node 1 the cores 2
// and 3 with 2, 3, 10, 11, and so on. Each core has a cache of its own. Two GPUs hang at node 1, two at node 2.
Topology two_sockets() {
  Topology topology;
  for (int core = 0; core < 8; ++core) {
    for (const int cpu : {core, core + 8}) {
      topology.allowed.push_back(cpu);
      topology.nodes[core / 2].push_back(cpu);
      topology.core_of[cpu] = topology.cache_of[cpu] = core;
      topology.socket_of[cpu] = core / 4;
    }
  }
  std::ranges::sort(topology.allowed);
  for (auto& [node, cpus] : topology.nodes) std::ranges::sort(cpus);
  for (const int node : {1, 1, 2, 2}) topology.gpus.push_back({.address = "0000:1a:00.0", .node = node});
  return topology;
}

Placement placed(const Topology& topology, Mode mode, int local_rank, int workers = 4) {
  return place_workers(topology, {.mode = mode}, workers).at(static_cast<std::size_t>(local_rank));
}

Cpus cpus(const Topology& topology, Mode mode, int local_rank, int workers = 4) {
  return placed(topology, mode, local_rank, workers).cpus;
}

}  // namespace

TEST_CASE("a worker is bound to its GPU's NUMA node, or to all nodes of its socket") {
  const Topology topology = two_sockets();
  CHECK(cpus(topology, Mode::kNode, 0) == Cpus{2, 3, 10, 11});
  CHECK(cpus(topology, Mode::kNode, 1) == Cpus{2, 3, 10, 11});
  CHECK(cpus(topology, Mode::kNode, 3) == Cpus{4, 5, 12, 13});
  CHECK(cpus(topology, Mode::kSocket, 0) == Cpus{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(cpus(topology, Mode::kSocket, 2) == Cpus{4, 5, 6, 7, 12, 13, 14, 15});
  CHECK(placed(topology, Mode::kNode, 0).why_other.empty());
}

TEST_CASE("a node's physical cores are divided among its GPUs, the first get those that are left") {
  Topology topology = two_sockets();
  CHECK(cpus(topology, Mode::kExclusive, 0) == Cpus{2, 10});
  CHECK(cpus(topology, Mode::kExclusive, 1) == Cpus{3, 11});
  topology.nodes[1] = {0, 1, 2, 8, 9, 10};  // three cores for two GPUs
  CHECK(cpus(topology, Mode::kExclusive, 0) == Cpus{0, 1, 8, 9});
  CHECK(cpus(topology, Mode::kExclusive, 1) == Cpus{2, 10});
}

TEST_CASE("where a node has fewer cores than GPUs, its workers share the node and that is told") {
  Topology topology = two_sockets();
  topology.gpus.push_back({.address = "0000:2a:00.0", .node = 1});
  const Placement placement = placed(topology, Mode::kExclusive, 4, 5);
  CHECK(placement.cpus == Cpus{2, 3, 10, 11});
  CHECK(placement.why_other == "NUMA node 1 has 2 physical cores to use, too few for 3 exclusive parts");
}

TEST_CASE("each GPU of a node has another core complex as long as there are some, the largest first") {
  Topology topology = two_sockets();
  CHECK(cpus(topology, Mode::kCoreComplex, 0) == Cpus{2, 10});
  CHECK(cpus(topology, Mode::kCoreComplex, 1) == Cpus{3, 11});
  std::erase(topology.allowed, 2);
  CHECK(cpus(topology, Mode::kCoreComplex, 0) == Cpus{3, 11});
  CHECK(cpus(topology, Mode::kCoreComplex, 1) == Cpus{10});
  topology.gpus.push_back({.address = "0000:2a:00.0", .node = 1});
  CHECK(cpus(topology, Mode::kCoreComplex, 4, 5) == Cpus{3, 11});
}

TEST_CASE("only CPUs that elastic-run may use are given, and a worker without any is not bound") {
  Topology topology = two_sockets();
  topology.allowed = {2, 3};
  CHECK(cpus(topology, Mode::kNode, 0) == Cpus{2, 3});
  const Placement placement = placed(topology, Mode::kNode, 2);
  CHECK(placement.cpus.empty());
  CHECK(placement.why_other == "elastic-run may use CPUs 2-3 only, and NUMA node 2 has 4-5, 12-13");
}

TEST_CASE("a GPU at a node without CPUs, or at one that is not there, has no CPUs to bind to") {
  Topology topology = two_sockets();
  topology.nodes[4] = {};
  topology.gpus = {{.address = "a", .node = 4}, {.address = "b", .node = 7}};
  CHECK(placed(topology, Mode::kNode, 0, 2).why_other == "NUMA node 4 has no CPUs");
  CHECK(placed(topology, Mode::kNode, 1, 2).why_other == "sysfs has no NUMA node 7");
}

TEST_CASE("a GPU that names no NUMA node is taken to be at node 0, which is told where there are others") {
  Topology topology = two_sockets();
  topology.gpus = {{.address = "0000:1a:00.0", .node = -1}};
  CHECK(cpus(topology, Mode::kNode, 0, 1) == Cpus{0, 1, 8, 9});
  CHECK(placed(topology, Mode::kNode, 0, 1).why_other == "sysfs names no NUMA node of the GPU (node 0 is assumed)");
  topology.allowed = {4, 5};
  CHECK(cpus(topology, Mode::kNode, 0, 1) == Cpus{4, 5});
  CHECK(placed(topology, Mode::kNode, 0, 1).why_other == "sysfs names no NUMA node of the GPU (node 2 is assumed)");
  topology.allowed = {2, 4};
  CHECK(placed(topology, Mode::kNode, 0, 1).why_other ==
        "sysfs names no NUMA node of the GPU (node 0 is assumed), and elastic-run may use CPUs 2, 4 only, and NUMA "
        "node 0 "
        "has 0-1, 8-9");
  topology = two_sockets();
  topology.gpus = {{.address = "0000:1a:00.0", .node = -1}};
  topology.nodes = {{0, topology.allowed}};
  CHECK(cpus(topology, Mode::kNode, 0, 1) == topology.allowed);
  CHECK(placed(topology, Mode::kNode, 0, 1).why_other.empty());
}

TEST_CASE("a GPU whose place is not known binds its worker only where there is one NUMA node") {
  Topology topology = two_sockets();
  topology.gpus[1] = {.why_unknown = "why"};
  CHECK(placed(topology, Mode::kExclusive, 1).cpus.empty());
  CHECK(placed(topology, Mode::kExclusive, 1).why_other == "why");
  CHECK(cpus(topology, Mode::kExclusive, 0) == Cpus{2, 3, 10, 11});
  topology.allowed = {4, 5};
  CHECK(cpus(topology, Mode::kNode, 1) == Cpus{4, 5});
  CHECK(placed(topology, Mode::kNode, 1).why_other == "why (node 2 is assumed)");
  topology.allowed.clear();
  CHECK(placed(topology, Mode::kNode, 0).why_other == "the CPUs that elastic-run may use are not known");
}

TEST_CASE("without a GPU the workers are spread over the NUMA nodes in blocks") {
  Topology topology = two_sockets();
  topology.gpus.clear();
  CHECK(cpus(topology, Mode::kNode, 0, 1) == Cpus{0, 1, 8, 9});
  CHECK(cpus(topology, Mode::kNode, 1, 2) == Cpus{4, 5, 12, 13});
  for (int rank = 0; rank < 8; ++rank) {
    CHECK(cpus(topology, Mode::kNode, rank, 8) == topology.nodes.at(rank / 2));
    CHECK(cpus(topology, Mode::kExclusive, rank, 8) == Cpus{rank, rank + 8});
  }
  topology.allowed = {4, 6};
  CHECK(cpus(topology, Mode::kNode, 0, 2) == Cpus{4});
  CHECK(cpus(topology, Mode::kNode, 1, 2) == Cpus{6});
}

TEST_CASE("workers without a GPU of their own share the CPUs of the GPU that they share") {
  const Topology topology = two_sockets();
  CHECK(cpus(topology, Mode::kExclusive, 0, 8) == Cpus{2, 10});
  CHECK(cpus(topology, Mode::kExclusive, 5, 8) == Cpus{3, 11});
}

TEST_CASE("memory comes from the worker's NUMA node, or is bound to those of its CPUs") {
  const Topology topology = two_sockets();
  const auto memory = [&](Mode mode, Memory kind) { return place_workers(topology, {mode, kind}, 4).front(); };
  CHECK(memory(Mode::kNode, Memory::kAny).nodes.empty());
  CHECK(memory(Mode::kSocket, Memory::kPreferred).nodes == Cpus{1});
  CHECK(memory(Mode::kSocket, Memory::kBound).nodes == Cpus{0, 1});
  CHECK(memory(Mode::kExclusive, Memory::kBound).nodes == Cpus{1});
  CHECK(memory(Mode::kNode, Memory::kBound).memory == Memory::kBound);
}

TEST_CASE("what sysfs does not tell is told, and the next larger set is taken") {
  Topology topology = two_sockets();
  topology.socket_of.clear();
  topology.cache_of.clear();
  topology.core_of.clear();
  CHECK(cpus(topology, Mode::kSocket, 0) == Cpus{2, 3, 10, 11});
  CHECK(placed(topology, Mode::kSocket, 0).why_other == "sysfs does not tell the socket of CPU 2");
  CHECK(cpus(topology, Mode::kCoreComplex, 1) == Cpus{2, 3, 10, 11});
  CHECK(placed(topology, Mode::kCoreComplex, 1).why_other == "sysfs tells no caches of CPUs 2-3, 10-11");
  CHECK(cpus(topology, Mode::kExclusive, 0) == Cpus{2, 3});  // each CPU counts as a core
  CHECK(placed(topology, Mode::kExclusive, 0).why_other == "sysfs does not tell the physical cores of CPUs 2-3, 10-11");
}
