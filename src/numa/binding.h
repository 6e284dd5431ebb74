#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

// Which CPUs and which memory each worker of a node gets.
namespace elastic::numa {

// A GPU as workers see it.
struct Gpu {
  std::string address = {};      // on the PCI bus, as sysfs names it: "0000:1a:00.0"; empty: not known
  std::optional<int> node = {};  // its NUMA node, as sysfs tells it: -1 where the firmware does not say
  std::string why_unknown = {};  // where the node is not known: the reason
};

// What a host has of CPUs, NUMA nodes and GPUs: as much of it as a binding needs. Cores and caches have the number of
// their lowest CPU, which need not be an allowed one.
struct Topology {
  std::vector<int> allowed = {};               // the CPUs that elastic-run may use, sorted
  std::map<int, std::vector<int>> nodes = {};  // the CPUs of each NUMA node, sorted, allowed or not
  std::map<int, int> socket_of = {};           // sockets by CPU: of the lowest allowed one of each node
  std::map<int, int> core_of = {};             // physical cores by allowed CPU
  std::map<int, int> cache_of = {};            // caches of the highest level by allowed CPU
  std::vector<Gpu> gpus = {};                  // those that workers see, in CUDA's order
};

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

// A worker that is not bound as was asked for.
struct Warning {
  enum class Kind : unsigned char { kCpusNotBound, kOtherCpus, kMemoryNotBound };
  Kind kind = Kind::kCpusNotBound;
  int local_rank = 0;
  std::string reason = {};
};

// All of them in one text, workers with the same reason together: "the CPUs of local ranks 2-3 are not bound: ...; the
// memory of ...". Empty where there is none.
std::string text_of(const std::vector<Warning>& warnings);

}  // namespace elastic::numa
