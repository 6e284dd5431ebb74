#include "cli/device_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "cli/launch_plan_test_support.h"

using namespace elastic;
using namespace elastic::cli;
using run::Devices;

namespace {

int workers(const Trial& t, const std::string& word) {
  return t.good({"--nproc-per-node=" + word, "train.py"}).settings.node.local_world_size;
}

std::string origin_of_workers(const Trial& t, const std::string& word) {
  const LaunchPlan plan = t.good({"--nproc-per-node=" + word, "train.py"});
  return std::ranges::find(plan.entries, "workers on this node", &PlanEntry::name)->origin;
}

Devices devices(const Trial& t, std::vector<std::string> options = {}) {
  options.insert(options.end(), {"--virtual-local-rank", "train.py"});
  return t.good(std::move(options)).settings.worker.devices;
}

}  // namespace

TEST_CASE("gpu and auto count AMD's GPUs where there are none of NVIDIA") {
  Trial t;
  t.host.others = {.has_amd = true, .amd = 4};
  CHECK(workers(t, "gpu") == 4);
  CHECK(origin_of_workers(t, "auto") == "command line: --nproc-per-node=auto, visible AMD GPUs");
  CHECK(t.good({"--auto_config", "train.py"}).settings.node.local_world_size == 4);
  t.host.gpus = 2;
  CHECK(workers(t, "gpu") == 2);
  t.environment.emplace_back("CUDA_VISIBLE_DEVICES=");
  CHECK(workers(t, "auto") == 6);
}

TEST_CASE("auto does not count the GPU of an AMD processor, and devices of others come before it") {
  Trial t;
  t.host.others = {.has_amd = true, .amd = 1, .is_amd_integrated = true};
  CHECK(workers(t, "gpu") == 1);
  CHECK(workers(t, "auto") == 6);
  CHECK(t.good({"--auto_config", "--nproc-per-node=3", "train.py"}).settings.node.local_world_size == 3);
  CHECK(devices(t) == Devices::kAmd);
  t.host.others.has_intel = true;
  t.host.others.intel = 2;
  CHECK(workers(t, "auto") == 2);
  CHECK(devices(t) == Devices::kIntel);
  t.host.gpus = 4;
  CHECK(workers(t, "auto") == 4);
}

TEST_CASE("gpu where no AMD GPU is visible names the variables that hide them") {
  Trial t;
  t.host.others = {.has_amd = true, .amd = 0};
  t.environment.emplace_back("ROCR_VISIBLE_DEVICES=9");
  t.environment.emplace_back("HIP_VISIBLE_DEVICES=0");
  CHECK(
      t.error({"--nproc-per-node=gpu", "train.py"}) ==
      "--nproc-per-node=gpu: no AMD GPU is visible with ROCR_VISIBLE_DEVICES=9 HIP_VISIBLE_DEVICES=0; give the number "
      "of workers, or use auto or cpu");
  CHECK(workers(t, "auto") == 6);
}

TEST_CASE("xpu counts Intel's discrete GPUs, or else those in processors, and auto the discrete ones only") {
  Trial t;
  CHECK(t.error({"--nproc-per-node=xpu", "train.py"}).starts_with("--nproc-per-node=xpu: no Intel GPU is found"));
  t.host.others = {.has_intel = true, .intel_integrated = 1};
  CHECK(workers(t, "xpu") == 1);
  CHECK(workers(t, "auto") == 6);
  t.host.others = {.has_intel = true, .intel = 12, .intel_integrated = 1};
  CHECK(workers(t, "xpu") == 12);
  CHECK(origin_of_workers(t, "auto") == "command line: --nproc-per-node=auto, visible Intel GPUs");
  t.host.gpus = 3;
  CHECK(workers(t, "auto") == 3);
  t.host.others = {.has_intel = true};
  t.environment.emplace_back("ZE_AFFINITY_MASK=7");
  CHECK(t.error({"--nproc-per-node=xpu", "train.py"})
            .starts_with("--nproc-per-node=xpu: no Intel GPU is visible with ZE_AFFINITY_MASK=7; "));
}

TEST_CASE("a virtual local rank is about the devices that the host has, NVIDIA's first") {
  Trial t;
  CHECK(devices(t) == Devices::kCuda);
  t.host.others = {.has_intel = true};
  CHECK(devices(t) == Devices::kIntel);
  t.host.others.has_ascend = true;
  CHECK(devices(t) == Devices::kAscend);
  t.host.others.has_amd = true;
  CHECK(devices(t) == Devices::kAmd);
  t.host.gpus = 1;
  CHECK(devices(t) == Devices::kCuda);
  CHECK(devices(t, {"--accelerator=ascend-npu"}) == Devices::kAscend);
}

TEST_CASE("a list of devices that the user has set makes a virtual local rank be about them") {
  for (const auto& [variable, wanted] :
       std::vector<std::pair<std::string, Devices>>{{"ROCR_VISIBLE_DEVICES=3", Devices::kAmd},
                                                    {"ZE_AFFINITY_MASK=3", Devices::kIntel},
                                                    {"ASCEND_RT_VISIBLE_DEVICES=3", Devices::kAscend}}) {
    CAPTURE(variable);
    Trial t;
    t.environment.push_back(variable);
    CHECK(devices(t) == wanted);
    CHECK(t.error({"--virtual-local-rank", "--nproc-per-node=2", "train.py"}).starts_with(variable + ": "));
    t.host.gpus = 1;
    CHECK(devices(t) == Devices::kCuda);
  }
}

TEST_CASE("HCCL's ports begin at --training-port with ascend-npu, or at HCCL_IF_BASE_PORT") {
  Trial t;
  const auto start = [&](std::vector<std::string> options) {
    options.push_back("train.py");
    const LaunchPlan plan = t.good(std::move(options));
    const auto entry = std::ranges::find(plan.entries, "HCCL's ports", &PlanEntry::name);
    CHECK((entry != plan.entries.end()) == (plan.settings.worker.training_port != 0));
    return plan.settings.worker.training_port;
  };
  CHECK(start({}) == 0);
  CHECK(start({"--accelerator=ascend-npu"}) == 60'000);
  CHECK(start({"--accelerator=ascend-npu", "--training-port=0"}) == 0);
  CHECK(start({"--accelerator=ascend-npu", "--training-port=61000"}) == 61'000);
  t.environment.emplace_back("HCCL_IF_BASE_PORT=65000");
  CHECK(start({"--accelerator=ascend-npu", "--training-port=61000"}) == 65'000);
  CHECK(start({"--accelerator=ascend-npu", "--training-port=0"}) == 0);
  CHECK(start({}) == 0);
}

TEST_CASE("a start at which HCCL's ports do not fit is refused, and one without effect is named") {
  Trial t;
  CHECK(t.error({"--accelerator=ascend-npu", "--training-port=65521", "train.py"}) ==
        "--training-port=65521: HCCL needs 16 ports from there on; give a port from 1 to 65520");
  t.environment.emplace_back("HCCL_IF_BASE_PORT=x");
  CHECK(t.error({"--accelerator=ascend-npu", "train.py"}) ==
        "HCCL_IF_BASE_PORT=x: this is no port; give a port from 1 to 65520");
  CHECK(t.good({"--training-port=61000", "train.py"}).warnings ==
        std::vector<std::string>{"--training-port=61000 is only used with --accelerator=ascend-npu; it is ignored"});
  CHECK(t.good({"--training-port=60000", "train.py"}).warnings.empty());
}
