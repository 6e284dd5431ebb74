#include "src/process/devices.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

using namespace elastic::process;

namespace {

const GpuInventory kFour{4, {"GPU-aaaa1", "GPU-aaab2", "GPU-bbbb3", "GPU-cccc4"}};

struct FakeRoot {
  FakeRoot() {
    char name[] = "/tmp/elastic-run-devices-XXXXXX";
    path = mkdtemp(name);
  }
  ~FakeRoot() { std::filesystem::remove_all(path); }
  void file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  std::filesystem::path path;
};

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
  CHECK(visible_gpus(kFour, "0,GPU-aaaa1") == 0);
}

TEST_CASE("GPUs are named by UUID or by the beginning of one, if it is only one's") {
  CHECK(visible_gpus(kFour, "GPU-bbbb3,GPU-cccc") == 2);
  CHECK(visible_gpus(kFour, "GPU-aaa") == 0);
  CHECK(visible_gpus(kFour, "GPU-bbbb3,GPU-none,0") == 1);
  CHECK(visible_gpus({2, {}}, "GPU-x,GPU-y") == 2);
}

TEST_CASE("without a GPU nothing is visible, whatever the variable says") {
  CHECK(visible_gpus({}, std::nullopt) == 0);
  CHECK(visible_gpus({}, "0,1") == 0);
  CHECK(visible_gpus({}, "GPU-x") == 0);
}

TEST_CASE("GPUs are found in the driver's files, with their UUIDs") {
  const FakeRoot root;
  root.file("proc/driver/nvidia/gpus/0000:1a:00.0/information",
            "Model: \t\t H100\nGPU UUID: \t GPU-2\n");
  root.file("proc/driver/nvidia/gpus/0000:0a:00.0/information", "GPU UUID: \t GPU-1\n");
  const GpuInventory found = find_gpus(root.path);
  CHECK(found.count == 2);
  CHECK(found.uuids == std::vector<std::string>{"GPU-1", "GPU-2"});
}

TEST_CASE("without the driver's files the device nodes are counted") {
  const FakeRoot root;
  for (const char* name : {"dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-uvm"}) {
    root.file(name, "");
  }
  CHECK(find_gpus(root.path).count == 2);
}

TEST_CASE("at least one CPU is usable") { CHECK(usable_cpus() >= 1); }
