#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/gpu/gpu_thresholds.h"
#include "health/gpu/messages.h"
#include "health/messages/messages.h"

// What of GPUs is not as training wants it, by the table in gpu_thresholds.h. What is not known is not judged.
namespace elastic::health {

// A GPU by the names that CUDA, NVML and the kernel have for it. Bus ids may be written in any of their ways.
struct GpuIdentity {
  std::string uuid = {};
  std::string bus_id = {};
};

// What is to run on the node's GPUs.
struct GpuNeeds {
  int nproc = 1;                       // workers, at least 1
  std::optional<int> visible = {};     // GPUs that the workers will see
  std::vector<GpuIdentity> used = {};  // which these are; none: all that there are
  bool after_work = false;             // until just before `after` the GPUs worked, so that they are not idle
};

// `before` the check, before anything of ours has taken memory, and `after` it; the first is empty, or the same as the
// second, where GPUs were looked at once. Memory is judged as it was before, what counts up is told if it rose, all
// else as it is after. GPUs of the host that the workers will not use are nobody's affair here.
std::vector<Finding> judge_gpus(const std::vector<GpuFacts>& before, const std::vector<GpuFacts>& after,
                                const GpuNeeds& needs);

// Whether a GPU has so much memory in use that it would be told, and no process is seen that has any: one that has just
// ended may give it back yet.
bool has_memory_of_nobody(const std::vector<GpuFacts>& gpus);

// Of lines of the kernel log: `recent` ones, from since the job began on this node, and those from `earlier`, after
// which GPUs may have been reset. Each Xid of each GPU is told once. Xids that are a program's own fault are not told.
std::vector<Finding> xid_findings(std::string_view earlier, std::string_view recent, const GpuNeeds& needs);

}  // namespace elastic::health
