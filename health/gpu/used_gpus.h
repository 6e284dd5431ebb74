#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "health/gpu/judge_gpu.h"
#include "health/gpu/messages.h"

namespace elastic::health {

// Which GPUs the workers will use, for GpuNeeds::used. `opened`: the GPUs that the workers see, in CUDA's order, with
// nothing for a GPU that could not be opened. Such a GPU is looked up among those that NVML shows (`shown`) by its
// entry in `visible`, the value of CUDA_VISIBLE_DEVICES if that is set. Returns an empty list for all GPUs of the node,
// and nothing where it is not known which GPUs are used, so that none can be judged.
std::optional<std::vector<GpuIdentity>> used_gpus(const std::vector<std::optional<GpuIdentity>>& opened,
                                                  const std::vector<GpuFacts>& shown,
                                                  const std::optional<std::string>& visible);

// The GPU that a program sees as its number `index`, with this value of CUDA_VISIBLE_DEVICES; null: it is not known.
const GpuFacts* visible_gpu(std::size_t index, const std::vector<GpuFacts>& shown,
                            const std::optional<std::string>& visible);

}  // namespace elastic::health
