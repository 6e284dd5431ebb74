#include "health/host/read_infiniband.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "src/base/fake_root_test_support.h"

using namespace elastic::health;
using elastic::testing::FakeRoot;
namespace fs = std::filesystem;

namespace {

using Nodes = std::vector<std::string>;

}  // namespace

TEST_CASE("every port of every InfiniBand device is told, with the place of its device") {
  const FakeRoot root;
  const std::string all = "/sys/class/infiniband/";
  const std::string device = "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0/";
  root.file(device + "vendor", "0x15b3\n");
  root.file(device + "device", "0x1021\n");
  root.file(device + "numa_node", "1\n");
  root.file(device + "infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  root.file(device + "infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  root.file(device + "infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  root.link(device + "infiniband/mlx5_0/device", "../..");
  root.link(all + "mlx5_0", "../../devices/pci0000:17/0000:17:01.0/0000:18:00.0/infiniband/mlx5_0");
  root.file(all + "rxe0/ports/1/state", "4: ACTIVE\n");
  const std::vector<InfinibandPort> ports = read_infiniband(root.path);
  REQUIRE(ports.size() == 2);
  CHECK(ports[0].device == "mlx5_0");
  CHECK(ports[0].state == "ACTIVE");
  CHECK(ports[0].kind == "0x15b3:0x1021");
  CHECK(ports[0].pci.nodes == Nodes{"pci0000:17", "0000:17:01.0", "0000:18:00.0"});
  CHECK(ports[0].pci.numa_node == 1);
  CHECK(ports[1].device == "rxe0");
  CHECK(ports[1].kind.empty());
  CHECK(ports[1].pci.nodes.empty());
  CHECK(read_infiniband(root.path / "none").empty());
}

TEST_CASE("a GPU's place is found by its bus id, in all ways to write it") {
  const FakeRoot root;
  const Nodes nodes = {"pci0000:17", "0000:17:01.0", "0000:1b:00.0"};
  root.file("/sys/devices/pci0000:17/0000:17:01.0/0000:1b:00.0/numa_node", "-1\n");
  root.link("/sys/bus/pci/devices/0000:1b:00.0", "../../../devices/pci0000:17/0000:17:01.0/0000:1b:00.0");
  root.file("/sys/devices/pci10000:e0/10000:e0:01.0/numa_node", "0\n");
  root.link("/sys/bus/pci/devices/10000:e0:01.0", "../../../devices/pci10000:e0/10000:e0:01.0");
  CHECK(read_pci_path(root.path, "0000:1b:00.0").nodes == nodes);
  CHECK(read_pci_path(root.path, "00000000:1B:00.0").nodes == nodes);
  CHECK(!read_pci_path(root.path, "0000:1b:00.0").numa_node);
  CHECK(read_pci_path(root.path, "00010000:E0:01.0").nodes == Nodes{"pci10000:e0", "10000:e0:01.0"});
  CHECK(read_pci_path(root.path, "00010000:E0:01.0").numa_node == 0);
  for (const char* other : {"", "0000:2b:00.0", "..", "0000:../../..", ":"}) {
    CAPTURE(other);
    CHECK(read_pci_path(root.path, other).nodes.empty());
  }
}
