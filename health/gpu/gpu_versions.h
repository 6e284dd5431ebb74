#pragma once

#include <vector>

#include "health/gpu/messages.h"
#include "health/messages/messages.h"

// Compares the GPUs of all nodes, and the software for them.
namespace elastic::health {

// The versions of a node, by what its probes, one for each GPU, have reported.
GpuVersions versions_of(const std::vector<GpuOpened>& probes);

struct NodeGpus {
  int node = 0;  // rank
  GpuVersions versions = {};
};

// A finding for each node whose GPU model or software differs from what most nodes have. Where no value is the most
// common one, every node has a finding, since it is not known which value is right. By node rank.
std::vector<NodeFinding> version_findings(const std::vector<NodeGpus>& nodes);

}  // namespace elastic::health
