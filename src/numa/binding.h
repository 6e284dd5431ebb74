#pragma once

#include <string>
#include <vector>

#include "src/numa/topology.h"

// Which CPUs and which memory each worker of a node gets.
namespace elastic::numa {

// The CPUs of a worker, by the rules of torchrun's --numa-binding (torch/numa/binding.py).
enum class Mode : unsigned char {
  kNode,         // those of its GPU's NUMA node
  kSocket,       // those of all NUMA nodes of that socket
  kExclusive,    // its share of that node's physical cores, which are divided among the node's GPUs
  kCoreComplex,  // one group of that node's CPUs that share the cache of the highest level
};

// The memory of a worker, by the rules of dlrover-run's --membind-policy.
enum class Memory : unsigned char {
  kAny,        // it is left to the kernel
  kPreferred,  // that of the NUMA node, as long as there is some
  kBound,      // that of its CPUs' NUMA nodes only
};

struct Request {
  Mode mode = Mode::kNode;
  Memory memory = Memory::kAny;
};

// One worker's place.
struct Placement {
  std::vector<int> cpus = {};  // sorted; empty: it is not bound
  Memory memory = Memory::kAny;
  std::vector<int> nodes = {};  // of its memory, sorted; empty with kAny
  std::string why_other = {};   // where it is not what was asked for, or only assumed: the reason
};

// Decides the place of each of the workers, by local rank. Worker r goes by GPU r; where there are fewer GPUs than
// workers, by GPU r modulo their number, with whose other workers it shares the CPUs. Without a GPU the workers are
// spread over the NUMA nodes in blocks, as if each had a GPU there. Only allowed CPUs are given. `workers` is at least
// 1.
std::vector<Placement> place_workers(const Topology& topology, const Request& request, int workers);

}  // namespace elastic::numa
