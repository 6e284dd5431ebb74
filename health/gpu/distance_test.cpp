#include "health/gpu/distance.h"

#include <doctest/doctest.h>

#include "health/gpu/gpu_thresholds.h"

using namespace elastic::health;

namespace {

// A PCI path such as "pci0000:17/0000:17:01.0", on a NUMA node.
PciPath at(const std::string& path, std::optional<int> numa_node = 0) {
  PciPath found{.nodes = {}, .numa_node = numa_node};
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    found.nodes.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

// A GPU behind the switch below the root port 17:01.0.
const PciPath kGpu = at("pci0000:17/17:01.0/18:00.0/19:00.0/1a:00.0");

std::string distance(const PciPath& other, const PciPath& gpu = kGpu) {
  const auto found = distance_between(gpu, other);
  CHECK(found == distance_between(other, gpu));
  return found ? distance_name(*found) : "";
}

InfinibandPort port(const std::string& device, const PciPath& pci, const std::string& state = "ACTIVE",
                    const std::string& link_layer = "InfiniBand") {
  return {.device = device, .port = 1, .state = state, .link_layer = link_layer, .pci = pci};
}

std::vector<NearestPort> nearest_of(const std::vector<std::string>& distances) {
  std::vector<NearestPort> nearest;
  for (const std::string& each : distances) {
    nearest.push_back(
        {.gpu = "0000:1" + std::to_string(nearest.size()) + ":00.0", .distance = each, .port = "mlx5_0 port 1"});
  }
  return nearest;
}

}  // namespace

TEST_CASE("the distance of two PCI devices has the names of nvidia-smi topo") {
  CHECK(distance(at("pci0000:17/17:01.0/18:00.0/19:01.0/1b:00.0")) == "PIX");
  CHECK(distance(at("pci0000:17/17:01.0/18:00.0/19:00.0/1a:00.1")) == "PIX");
  CHECK(distance(at("pci0000:17/17:01.0/18:00.0/19:02.0/1c:00.0/1d:00.0/1e:00.0")) == "PXB");
  CHECK(distance(at("pci0000:17/17:02.0/30:00.0")) == "PHB");
  CHECK(distance(at("pci0000:40/40:01.0/41:00.0")) == "NODE");
  CHECK(distance(at("pci0000:80/80:01.0/81:00.0", 1)) == "SYS");
  CHECK(distance(at("pci0000:80/80:01.0/81:00.0", {})) == "NODE");
  CHECK(distance({}) == "");
}

TEST_CASE("devices of a virtual machine that shows no switches are all behind its host bridge") {
  CHECK(distance(at("pci0000:00/00:06.0"), at("pci0000:00/00:05.0")) == "PHB");
}

TEST_CASE("each GPU has its nearest active port, of InfiniBand where any is") {
  const PciPath beside = at("pci0000:17/17:01.0/18:00.0/19:01.0/1b:00.0");
  const PciPath far = at("pci0000:80/80:01.0/81:00.0", 1);
  const std::vector<GpuPlace> gpus = {{"0000:1a:00.0", kGpu}, {"0000:55:00.0", {}}};
  const NearestPort near{.gpu = "0000:1a:00.0", .distance = "PIX", .port = "mlx5_1 port 1"};
  CHECK(nearest_ports(gpus, {port("mlx5_0", far), port("mlx5_1", beside), port("mlx5_2", beside)}) ==
        std::vector{near});
  const NearestPort other{.gpu = "0000:1a:00.0", .distance = "SYS", .port = "mlx5_0 port 1"};
  CHECK(nearest_ports(gpus, {port("mlx5_0", far), port("mlx5_1", beside, "DOWN")}) == std::vector{other});
  CHECK(nearest_ports(gpus, {port("mlx5_0", far), port("mlx5_1", beside, "ACTIVE", "Ethernet")}) == std::vector{other});
  CHECK(nearest_ports(gpus, {port("mlx5_0", far, "INIT"), port("mlx5_1", beside, "ACTIVE", "Ethernet")}) ==
        std::vector{near});
  CHECK(nearest_ports(gpus, {port("rxe0", {})}).empty());
  CHECK(nearest_ports(gpus, {}).empty());
}

TEST_CASE("a GPU that is farther from its port than most is told: a warning across NUMA nodes, else a note") {
  CHECK(judge_distances(nearest_of({"PIX", "PXB", "PIX", "PIX"})).empty());
  CHECK(judge_distances(nearest_of({"SYS", "SYS", "NODE", "PHB"})).empty());
  CHECK(judge_distances(nearest_of({"PIX", "SYS"})).empty());
  CHECK(judge_distances({}).empty());
  const auto findings = judge_distances(nearest_of({"PIX", "SYS", "PXB", "NODE", "PIX", "PIX", "SYS"}));
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].severity == Severity::kWarning);
  CHECK(findings[0].what ==
        "the nearest active port is at another NUMA node (mlx5_0 port 1, SYS), while 4 of the node's 7 "
        "GPUs share a PCIe switch with one");
  CHECK(findings[0].where == "GPUs 0000:11:00.0, 0000:16:00.0");
  CHECK(findings[0].remedy == threshold(GpuRule::kNicAcross).remedy);
  CHECK(findings[1].severity == Severity::kNote);
  CHECK(findings[1].what ==
        "the nearest active port is behind the host bridge (mlx5_0 port 1, NODE), while 4 of the node's "
        "7 GPUs share a PCIe switch with one");
  CHECK(findings[1].where == "GPU 0000:13:00.0");
}
