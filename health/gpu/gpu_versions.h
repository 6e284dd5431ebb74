#pragma once

#include <vector>

#include "health/gpu/messages.h"
#include "health/messages/messages.h"

// Whether all nodes have the same GPUs and the same software for them.
namespace elastic::health {

// What the probes of a node, one per GPU, have found there.
GpuVersions versions_of(const std::vector<GpuOpened>& probes);

struct NodeGpus {
  int node = 0;  // rank
  GpuVersions versions = {};
};

// Who differs from most in model and software. Where no value has the most nodes all are told, since nobody knows which
// is right. By rank.
std::vector<NodeFinding> version_findings(const std::vector<NodeGpus>& nodes);

}  // namespace elastic::health
