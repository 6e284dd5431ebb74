#pragma once

#include <optional>
#include <string>
#include <vector>

#include "health/host/facts.h"
#include "health/messages/messages.h"

// How far GPUs are from the host's ports of InfiniBand and RoCE.
namespace elastic::health {

// What lies between two PCI devices, as nvidia-smi topo -m names it, nearest first.
enum class PciDistance {
  kPix,   // one switch
  kPxb,   // several switches, and not the host bridge
  kPhb,   // the host bridge
  kNode,  // host bridges of one NUMA node, or of nodes that are not known
  kSys,   // the way between NUMA nodes
};
const char* distance_name(PciDistance distance);  // "PIX"

// Nothing where a path is not known.
std::optional<PciDistance> distance_between(const PciPath& one, const PciPath& other);

struct GpuPlace {
  std::string bus_id;
  PciPath pci = {};
};

// The nearest active port of each GPU, in the order of the GPUs; those of InfiniBand alone count where one is active.
// None of a GPU whose place is not known; of ports that are as near the first.
std::vector<NearestPort> nearest_ports(const std::vector<GpuPlace>& gpus, const std::vector<InfinibandPort>& ports);

// GPUs that are farther from their nearest port than most of the node are from theirs, by the table in
// gpu_thresholds.h.
std::vector<Finding> judge_distances(const std::vector<NearestPort>& nearest);

}  // namespace elastic::health
