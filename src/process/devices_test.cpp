#include "src/process/devices.h"

#include <doctest/doctest.h>

#include "src/base/fake_root_test_support.h"

using namespace elastic::process;
using elastic::testing::FakeRoot;

namespace {

const GpuInventory kFour{.count = 4, .uuids = {"GPU-aaaa1", "GPU-aaab2", "GPU-bbbb3", "GPU-cccc4"}};

}  // namespace

TEST_CASE("CUDA_VISIBLE_DEVICES limits the GPUs as CUDA itself reads it") {
  CHECK(visible_gpus(kFour, std::nullopt) == 4);
  CHECK(visible_gpus(kFour, "0,2") == 2);
  CHECK(visible_gpus(kFour, " 1 , 3 ") == 2);
  CHECK(visible_gpus(kFour, "1gpu2") == 1);
  CHECK(visible_gpus(kFour, "") == 0);
  CHECK(visible_gpus(kFour, "-1") == 0);
  CHECK(visible_gpus(kFour, "0,7,1") == 1);
  CHECK(visible_gpus(kFour, "0,-1,1") == 1);
  CHECK(visible_gpus(kFour, "NoDevFiles") == 0);
}

TEST_CASE("a GPU named twice makes the whole list empty") {
  CHECK(visible_gpus(kFour, "0,0") == 0);
  CHECK(visible_gpus(kFour, "0,9,0") == 0);
  CHECK(visible_gpus(kFour, "GPU-aaaa1,GPU-aaaa1") == 0);
  CHECK(visible_gpus(kFour, "GPU-aaaa,GPU-aaaa1") == 0);
}

TEST_CASE("the first entry says whether numbers or UUIDs are given, and the list ends at one of the other kind") {
  CHECK(visible_gpus(kFour, "0,GPU-aaaa1") == 1);
  CHECK(visible_gpus(kFour, "GPU-aaaa1,0") == 1);
  CHECK(visible_gpus(kFour, "GPU-aaaa1, GPU-bbbb3") == 1);
  CHECK(visible_gpus(kFour, "MIG-x,MIG-y,1") == 2);
  CHECK(visible_gpus(kFour, " 1 , +2,-0") == 3);
  CHECK(visible_gpus(kFour, "1 2,3gpu") == 2);
  CHECK(visible_gpus(kFour, "1,99999999999999999999,2") == 1);
}

TEST_CASE("GPUs are named by UUID or by the beginning of one, if it is only one's") {
  CHECK(visible_gpus(kFour, "GPU-bbbb3,GPU-cccc") == 2);
  CHECK(visible_gpus(kFour, "GPU-aaa") == 0);
  CHECK(visible_gpus(kFour, "GPU-bbbb3,GPU-none,0") == 1);
  CHECK(visible_gpus({.count = 2}, "GPU-x,GPU-y") == 2);
}

TEST_CASE("without a GPU nothing is visible, whatever the variable says") {
  CHECK(visible_gpus({}, std::nullopt) == 0);
  CHECK(visible_gpus({}, "0,1") == 0);
  CHECK(visible_gpus({}, "GPU-x") == 0);
}

TEST_CASE("GPUs are found in the driver's files, with their UUIDs") {
  const FakeRoot root;
  root.file("proc/driver/nvidia/gpus/0000:1a:00.0/information", "Model: \t\t H100\nGPU UUID: \t GPU-2\n");
  root.file("proc/driver/nvidia/gpus/0000:0a:00.0/information", "Model: \t\t A100\nGPU UUID: \t GPU-1\n");
  const GpuInventory found = find_gpus(root.path);
  CHECK(found.count == 2);
  CHECK(found.uuids == std::vector<std::string>{"GPU-1", "GPU-2"});
  CHECK(found.addresses == std::vector<std::string>{"0000:0a:00.0", "0000:1a:00.0"});
  CHECK(!found.are_alike);
}

TEST_CASE("the address of each GPU that CUDA shows is known, in CUDA's order") {
  const GpuInventory three{3, {"GPU-a", "GPU-b", "GPU-c"}, {"0000:0a:00.0", "0000:1a:00.0", "0000:2a:00.0"}};
  const auto addresses = [&](const std::optional<std::string>& list) {
    std::vector<std::string> found;
    for (const VisibleGpu& gpu : find_visible_gpus(three, list, {})) found.push_back(gpu.address);
    return found;
  };
  using Addresses = std::vector<std::string>;
  CHECK(addresses({}) == three.addresses);
  CHECK(addresses("2,0") == Addresses{"0000:2a:00.0", "0000:0a:00.0"});
  CHECK(addresses("GPU-b") == Addresses{"0000:1a:00.0"});
  CHECK(addresses("1,7,0") == Addresses{"0000:1a:00.0"});
  CHECK(addresses("").empty());
  CHECK(addresses("0,0").empty());
  CHECK(addresses("MIG-x,MIG-y") == Addresses{"", ""});
  CHECK(find_visible_gpus(three, "MIG-x", {}).at(0).why ==
        "which GPU has the UUID in CUDA_VISIBLE_DEVICES is not known without NVIDIA's library");
}

TEST_CASE("GPUs of several models are known by number only with CUDA_DEVICE_ORDER=PCI_BUS_ID") {
  const GpuInventory mixed{2, {"GPU-a", "GPU-b"}, {"0000:0a:00.0", "0000:1a:00.0"}, false};
  CHECK(find_visible_gpus(mixed, "1", "PCI_BUS_ID").at(0).address == "0000:1a:00.0");
  CHECK(find_visible_gpus(mixed, "GPU-b", {}).at(0).address == "0000:1a:00.0");
  for (const auto& order : {std::optional<std::string>(), std::optional<std::string>("FASTEST_FIRST")}) {
    CHECK(find_visible_gpus(mixed, {}, order).at(0).address.empty());
    CHECK(find_visible_gpus(mixed, "1", order).at(0).why ==
          "the GPUs are of several models, which CUDA orders by speed; set CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
}

TEST_CASE("of the driver's GPUs those count that have a device file, if there are any") {
  const FakeRoot root;
  for (const std::string number : {"0", "1", "2"}) {
    root.file("proc/driver/nvidia/gpus/0000:" + number + "a:00.0/information", "Device Minor: \t " + number + "\n");
  }
  CHECK(find_gpus(root.path).count == 3);
  root.file("dev/nvidia-uvm", "");
  root.file("dev/nvidia1", "");
  CHECK(find_gpus(root.path).addresses == std::vector<std::string>{"0000:1a:00.0"});
}

TEST_CASE("where the driver does not tell a UUID, a GPU that is named by one counts, and its place is not known") {
  for (const std::string& unknown : {std::string(8, '?'), std::string()}) {
    const FakeRoot root;
    root.file("proc/driver/nvidia/gpus/0000:0a:00.0/information", "GPU UUID: \t GPU-1\n");
    root.file("proc/driver/nvidia/gpus/0000:1a:00.0/information", "GPU UUID: \t " + unknown + "\n");
    const GpuInventory found = find_gpus(root.path);
    CHECK(visible_gpus(found, "GPU-2,GPU-1") == 2);
    CHECK(find_visible_gpus(found, "GPU-2", {}).at(0).address.empty());
    CHECK(find_visible_gpus(found, "1", {}).at(0).address == "0000:1a:00.0");
  }
}

TEST_CASE("without the driver's files the PCI bus tells the GPUs' addresses, if it has as many") {
  const FakeRoot root;
  const auto device = [&](const std::string& address, const std::string& vendor, const std::string& kind) {
    root.file("sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
    root.file("sys/bus/pci/devices/" + address + "/class", kind + "\n");
  };
  root.file("dev/nvidia0", "");
  device("0000:1a:00.0", "0x10de", "0x030200");
  device("0000:01:00.0", "0x10de", "0x068000");  // a switch of NVLink
  device("0000:02:00.0", "0x1002", "0x030000");
  CHECK(find_gpus(root.path).addresses == std::vector<std::string>{"0000:1a:00.0"});
  device("0000:0a:00.0", "0x10de", "0x030000");
  CHECK(find_gpus(root.path).addresses.empty());
  CHECK(find_visible_gpus(find_gpus(root.path), "0", {}).at(0).why ==
        "/proc/driver/nvidia/gpus is not there, and /dev has not all GPUs of the PCI bus");
}

TEST_CASE("without the driver's files the device nodes are counted") {
  const FakeRoot root;
  for (const char* name : {"dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-uvm"}) {
    root.file(name, "");
  }
  CHECK(find_gpus(root.path).count == 2);
}

TEST_CASE("at least one CPU is usable") { CHECK(usable_cpus() >= 1); }

TEST_CASE("a cgroup's limit of CPU time limits the usable CPUs, whole ones only and at least one") {
  const int all = usable_cpus("/nowhere");
  const FakeRoot root;
  root.file("proc/self/cgroup", "3:cpu,cpuacct:/\n0::/pod\n");
  root.file("proc/self/mountinfo",
            "30 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            "31 1 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  const std::string v2 = "sys/fs/cgroup/unified/pod/cpu.max";
  const auto usable = [&] { return usable_cpus(root.path.string()); };
  CHECK(usable() == all);
  root.file(v2, "max 100000\n");
  CHECK(usable() == all);
  root.file(v2, "190000 100000\n");
  CHECK(usable() == 1);
  root.file(v2, "50000 100000\n");
  CHECK(usable() == 1);
  root.file(v2, "99900000 100000\n");
  CHECK(usable() == all);
  root.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(usable() == all);
  root.file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "120000\n");
  CHECK(usable() == 1);
}
