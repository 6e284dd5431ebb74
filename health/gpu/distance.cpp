#include "health/gpu/distance.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "health/gpu/gpu_thresholds.h"
#include "src/base/text.h"

namespace elastic::health {
namespace {

constexpr std::array<const char*, 5> kNames = {"PIX", "PXB", "PHB", "NODE", "SYS"};

bool is_active(const InfinibandPort& port) { return port.state == "ACTIVE" && !port.pci.nodes.empty(); }

// Whether only switches are between a GPU and its port.
bool is_near(const NearestPort& port) { return port.distance == kNames[0] || port.distance == kNames[1]; }
bool is_across(const NearestPort& port) { return port.distance == kNames[4]; }

}  // namespace

const char* distance_name(PciDistance distance) { return kNames[static_cast<std::size_t>(distance)]; }

std::optional<PciDistance> distance_between(const PciPath& one, const PciPath& other) {
  if (one.nodes.empty() || other.nodes.empty()) return {};
  const auto [end, other_end] = std::ranges::mismatch(one.nodes, other.nodes);
  const auto common = end - one.nodes.begin();
  if (common == 0) {
    const bool are_apart = one.numa_node && other.numa_node && *one.numa_node != *other.numa_node;
    return are_apart ? PciDistance::kSys : PciDistance::kNode;
  }
  if (common == 1) return PciDistance::kPhb;
  // In sysfs a switch is two levels of bridges: the port towards the host and, below it, one port for each device. So
  // two devices on one switch share their path down to the former.
  constexpr std::ptrdiff_t kOneSwitch = 2;
  const auto below = std::max(one.nodes.end() - end, other.nodes.end() - other_end);
  return below <= kOneSwitch ? PciDistance::kPix : PciDistance::kPxb;
}

std::vector<NearestPort> nearest_ports(const std::vector<GpuPlace>& gpus, const std::vector<InfinibandPort>& ports) {
  constexpr std::string_view kInfiniband = "InfiniBand";
  const bool infiniband_alone = std::ranges::any_of(
      ports, [&](const InfinibandPort& port) { return is_active(port) && port.link_layer == kInfiniband; });
  std::vector<NearestPort> nearest;
  for (const GpuPlace& gpu : gpus) {
    std::optional<PciDistance> least;
    const InfinibandPort* at = nullptr;
    for (const InfinibandPort& port : ports) {
      if (!is_active(port) || (infiniband_alone && port.link_layer != kInfiniband)) continue;
      const auto distance = distance_between(gpu.pci, port.pci);
      if (!distance || (least && *distance >= *least)) continue;
      least = distance;
      at = &port;
    }
    if (!least) continue;
    nearest.push_back({.gpu = printable(gpu.bus_id),
                       .distance = distance_name(*least),
                       .port = format("{} port {}", printable(at->device), at->port)});
  }
  return nearest;
}

std::vector<Finding> judge_distances(const std::vector<NearestPort>& nearest) {
  const auto near = std::ranges::count_if(nearest, is_near);
  if (2 * static_cast<std::size_t>(near) <= nearest.size()) return {};
  std::vector<Finding> findings;
  for (const bool across : {true, false}) {
    std::vector<std::string> gpus;
    std::string example;
    for (const NearestPort& port : nearest) {
      if (is_near(port) || is_across(port) != across) continue;
      gpus.push_back(port.gpu);
      if (example.empty()) example = format("{}, {}", port.port, port.distance);
    }
    if (gpus.empty()) continue;
    findings.push_back(finding_of(
        threshold(across ? GpuRule::kNicAcross : GpuRule::kNicFar),
        format("the nearest active port is {} ({}), while {} of the node's {} GPUs share a PCIe switch with one",
               across ? "at another NUMA node" : "behind the host bridge", example, near, nearest.size()),
        format("{} {}", plural("GPU", gpus.size()), join(gpus, ", "))));
  }
  return findings;
}

}  // namespace elastic::health
