#pragma once

#include <cstdint>
#include <string>

#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "src/base/environment.h"

// What a plan has of the node's devices: how many workers they make, which variables show a worker one of them, and
// where HCCL begins to look for ports.
namespace elastic::cli {

struct WorkerCount {
  std::int64_t number = 0;
  std::string of = {};  // what was counted: "visible GPUs"; empty: the number was given
};

// The devices that torch.cuda has: NVIDIA's, or AMD's on a host that has none of NVIDIA's, but none of those where all
// are in processors. 0: none is visible.
WorkerCount count_gpus(const HostView& host, const Environment& environment);

// How many workers --nproc-per-node means, whose error names `input`. Fails where the devices that it names are not
// visible.
Result<WorkerCount> count_workers(const WorkersPerNode& wanted, const std::string& input, const HostView& host,
                                  const Environment& environment);

// Whose devices --virtual-local-rank shares out: the host's, of which those count first that count_gpus() prefers, or
// those whose variable is set; Huawei's with --accelerator=ascend-npu.
run::Devices devices_of_workers(const ParsedFlags& flags, const HostView& host, const Environment& environment);

// Plans where HCCL's ports begin, with --accelerator=ascend-npu and a --training-port above 0. Fails where 16 ports do
// not fit there.
Status plan_training_port(const ParsedFlags& flags, const Environment& environment, LaunchPlan& plan);

}  // namespace elastic::cli
