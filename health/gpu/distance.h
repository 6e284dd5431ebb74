#pragma once

#include <optional>
#include <string>
#include <vector>

#include "health/host/facts.h"
#include "health/messages/messages.h"

// How far GPUs are from the host's InfiniBand and RoCE ports on the PCI bus.
namespace elastic::health {

// What connects two PCI devices, as nvidia-smi topo -m names it, the shortest way first.
enum class PciDistance {
  kPix,   // one switch
  kPxb,   // several switches, without the host bridge
  kPhb,   // the host bridge
  kNode,  // two host bridges of one NUMA node, or of NUMA nodes that are not known
  kSys,   // the connection between NUMA nodes
};
const char* distance_name(PciDistance distance);  // "PIX"

// Nothing where one of the paths is not known.
std::optional<PciDistance> distance_between(const PciPath& one, const PciPath& other);

struct GpuPlace {
  std::string bus_id;
  PciPath pci = {};
};

// The nearest active port of each GPU whose path is known, in the order of the GPUs. RoCE ports count only where no
// InfiniBand port is active. Of several ports that are equally near it is the first.
std::vector<NearestPort> nearest_ports(const std::vector<GpuPlace>& gpus, const std::vector<InfinibandPort>& ports);

// Findings about GPUs that are farther from their nearest port than most GPUs of the node are from theirs, by the table
// in gpu_thresholds.h.
std::vector<Finding> judge_distances(const std::vector<NearestPort>& nearest);

}  // namespace elastic::health
