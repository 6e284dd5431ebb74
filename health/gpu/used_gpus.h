#pragma once

#include <optional>
#include <string>
#include <vector>

#include "health/gpu/judge_gpu.h"
#include "health/gpu/messages.h"

namespace elastic::health {

// Which GPUs the workers will use, for GpuNeeds::used. `opened`: those that they see, as CUDA counts; nothing for one
// that could not be opened, which is looked for among those that NVML shows by its place in `visible`,
// CUDA_VISIBLE_DEVICES if that is set. An empty list: all that there are. Nothing: it cannot be known, so that none is
// to be judged.
std::optional<std::vector<GpuIdentity>> used_gpus(const std::vector<std::optional<GpuIdentity>>& opened,
                                                  const std::vector<GpuFacts>& shown,
                                                  const std::optional<std::string>& visible);

}  // namespace elastic::health
