#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace elastic::numa
