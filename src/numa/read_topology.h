#pragma once

#include <string>
#include <vector>

#include "src/numa/binding.h"

namespace elastic::numa {

// Reads what such a binding needs of the host's CPUs from <root>/sys/devices/system, and the NUMA nodes of the GPUs
// from <root>/sys/bus/pci/devices. `allowed`: the CPUs that this process may use, sorted. `gpus`: those that workers
// see, with their addresses or the reason why these are not known. A kernel that knows no NUMA nodes has one node, 0,
// with all allowed CPUs; what else cannot be read is left out.
Topology read_topology(const std::string& root, Mode mode, std::vector<int> allowed, std::vector<Gpu> gpus);

}  // namespace elastic::numa
