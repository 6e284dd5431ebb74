#include "src/process/other_devices.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "src/base/fake_root_test_support.h"

using namespace elastic::process;
using elastic::testing::FakeRoot;

namespace {

// Node 0 is a processor, and each other one a GPU.
void add_amd(const FakeRoot& root, int node, const std::string& unique_id) {
  const std::string path = "sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/";
  const std::string minor = std::to_string(127 + node);
  root.file(path + "gpu_id", node == 0 ? "0\n" : "5" + std::to_string(node) + "\n");
  root.file(path + "properties", node == 0 ? "cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n"
                                           : "cpu_cores_count 0\nsimd_count 304\ndrm_render_minor " + minor +
                                                 "\nlocation_id " + std::to_string(node << 8) +
                                                 "\ndomain 0\nunique_id " + unique_id + "\n");
  if (node != 0) root.file("dev/dri/renderD" + minor, "");
}

void add_intel(const FakeRoot& root, const std::string& address, const std::string& driver, int minor) {
  const std::string path = "sys/bus/pci/devices/" + address + "/";
  root.file(path + "vendor", "0x8086\n");
  root.file(path + "class", "0x038000\n");
  root.file(path + "drm/card" + std::to_string(minor - 128) + "/dev", "");
  root.file(path + "drm/renderD" + std::to_string(minor) + "/dev", "");
  root.file("dev/dri/renderD" + std::to_string(minor), "");
  root.link(path + "driver", "../../../bus/pci/drivers/" + driver);
}

using Value = std::optional<std::string>;

}  // namespace

TEST_CASE("AMD's GPUs are those of the kernel's topology, in its order, with ROCm's UUIDs") {
  const FakeRoot root;
  add_amd(root, 0, "");
  add_amd(root, 10, "18446744073709551615");
  add_amd(root, 2, "2748");
  add_amd(root, 1, "0");
  CHECK(find_amd_gpus(root.path).count == 0);  // ROCm's driver is not there
  root.file("dev/kfd", "");
  const GpuInventory found = find_amd_gpus(root.path);
  CHECK(found.count == 3);
  CHECK(found.uuids == std::vector<std::string>{"GPU-XX", "GPU-0000000000000abc", "GPU-ffffffffffffffff"});
  CHECK(found.addresses == std::vector<std::string>{"0000:01:00.0", "0000:02:00.0", "0000:0a:00.0"});
}

TEST_CASE("an AMD GPU is in a processor if it is a display controller beside the processor's own functions") {
  const FakeRoot root;
  const auto add = [&](const std::string& address, const std::string& kind, const std::string& vendor) {
    root.file("sys/bus/pci/devices/" + address + "/class", kind + "\n");
    root.file("sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
  };
  add("0000:03:00.0", "0x030000", "0x1002");  // a card, with its audio
  add("0000:03:00.1", "0x040300", "0x1002");
  add("0000:74:00.0", "0x038000", "0x1002");
  add("0000:74:00.1", "0x040300", "0x1002");
  add("0000:74:00.2", "0x108000", "0x1022");  // the processor's
  add("0000:75:00.0", "0x120000", "0x1002");  // an accelerator
  add("0000:75:00.2", "0x108000", "0x1022");
  CHECK(is_in_amd_processor("0000:74:00.0", root.path));
  CHECK(!is_in_amd_processor("0000:03:00.0", root.path));
  CHECK(!is_in_amd_processor("0000:75:00.0", root.path));
  CHECK(!is_in_amd_processor("0000:76:00.0", root.path));
}

TEST_CASE("an AMD GPU that a container does not have is not counted") {
  const FakeRoot root;
  root.file("dev/kfd", "");
  add_amd(root, 1, "1");
  add_amd(root, 2, "2");
  add_amd(root, 3, "3");
  std::filesystem::remove(root.path / "dev/dri/renderD129");
  root.file("sys/class/kfd/kfd/topology/nodes/3/gpu_id", "");  // may not be read
  CHECK(find_amd_gpus(root.path).uuids == std::vector<std::string>{"GPU-0000000000000001"});
}

TEST_CASE("ROCR_VISIBLE_DEVICES is applied first, and HIP's list or CUDA's chooses of what it leaves") {
  const GpuInventory four{.count = 4, .uuids = {"GPU-00a1", "GPU-00a2", "GPU-00b3", "GPU-00c4"}};
  const auto visible = [&](const Value& rocr, const Value& hip, const Value& cuda) {
    return visible_amd_gpus(four, rocr, hip, cuda);
  };
  CHECK(visible({}, {}, {}) == 4);
  CHECK(visible("2,3,1", {}, {}) == 3);
  CHECK(visible("", {}, {}) == 0);
  CHECK(visible({}, "0,3", {}) == 2);
  CHECK(visible({}, {}, "0,3") == 2);
  CHECK(visible({}, "0", "0,1,2") == 1);
  CHECK(visible("2,3", "0,1", {}) == 2);
  CHECK(visible("2,3", "2", {}) == 0);  // there are but 0 and 1
  CHECK(visible("2,3", {}, "1") == 1);
  CHECK(visible("2,3", "GPU-00c4", {}) == 1);
  CHECK(visible("2,3", "GPU-00a1", {}) == 0);
}

TEST_CASE("ROCR_VISIBLE_DEVICES ends at the first entry that is no GPU or is there twice") {
  const GpuInventory four{.count = 4, .uuids = {"GPU-00a1", "GPU-00a2", "GPU-00b3", "GPU-00c4"}};
  const auto visible = [&](const std::string& rocr) { return visible_amd_gpus(four, rocr, {}, {}); };
  CHECK(visible("0, 0x1 ,7,2") == 2);
  CHECK(visible("0,1,1,2") == 2);
  CHECK(visible("1gpu,2") == 0);
  CHECK(visible("GPU-00B,gpu-00c4") == 2);
  CHECK(visible("GPU-00a,0") == 0);
  CHECK(visible("-1") == 0);
}

TEST_CASE("Intel's GPUs are those of i915 and xe on the PCI bus, and one in the processor is told apart") {
  const FakeRoot root;
  add_intel(root, "0000:00:02.0", "i915", 128);
  add_intel(root, "0000:29:00.0", "xe", 129);
  add_intel(root, "0000:3a:00.0", "vfio-pci", 130);
  CHECK(find_intel_gpus({}, root.path) == IntelGpus{.discrete = 1, .integrated = 1});
  std::filesystem::remove(root.path / "dev/dri/renderD129");
  CHECK(find_intel_gpus({}, root.path) == IntelGpus{.discrete = 0, .integrated = 1});
  add_intel(root, "0000:00:02.1", "i915", 131);
  CHECK(find_intel_gpus({}, root.path) == IntelGpus{.discrete = 0, .integrated = 2});
  std::filesystem::remove(root.at("dev/dri/renderD131"));
  root.file("sys/bus/pci/devices/0000:00:02.0/vendor", "0x1002\n");
  CHECK(find_intel_gpus({}, root.path) == IntelGpus{});
}

TEST_CASE("each tile of a discrete Intel GPU is a device, unless ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE hides tiles") {
  const FakeRoot root;
  add_intel(root, "0000:29:00.0", "xe", 129);
  root.file("sys/bus/pci/devices/0000:29:00.0/tile0/gt0/freq0", "");
  root.file("sys/bus/pci/devices/0000:29:00.0/tile1/gt0/freq0", "");
  add_intel(root, "0000:9a:00.0", "i915", 130);
  root.file("sys/bus/pci/devices/0000:9a:00.0/drm/card2/gt/gt0/id", "");
  root.file("sys/bus/pci/devices/0000:9a:00.0/drm/card2/gt/gt1/id", "");
  CHECK(find_intel_gpus({}, root.path).discrete == 4);
  CHECK(find_intel_gpus("FLAT", root.path).discrete == 4);
  CHECK(find_intel_gpus("COMPOSITE", root.path).discrete == 2);
}

TEST_CASE("ZE_AFFINITY_MASK chooses of Intel's GPUs, of which the discrete ones come first") {
  const IntelGpus gpus{.discrete = 4, .integrated = 1};
  const auto visible = [&](const Value& mask) { return visible_intel_gpus(gpus, mask); };
  CHECK(visible({}) == gpus);
  CHECK(visible("") == gpus);
  CHECK(visible("0, 3") == IntelGpus{2, 0});
  CHECK(visible("4") == IntelGpus{0, 1});
  CHECK(visible("1,1,9,-1,x") == IntelGpus{1, 0});
  CHECK(visible("0.0,0.1,1.0") == IntelGpus{2, 0});
}

TEST_CASE("an NPU of Huawei's is seen by its device file") {
  const FakeRoot root;
  root.file("dev/davinci_manager", "");
  CHECK(!has_ascend(root.path));
  root.file("dev/davinci3", "");
  CHECK(has_ascend(root.path));
}
