#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/gpu/gpu_thresholds.h"
#include "health/gpu/messages.h"
#include "health/messages/messages.h"

// Findings about a node's GPUs, by the table in gpu_thresholds.h. What is not known is not judged.
namespace elastic::health {

// The names of a GPU. The bus id may be written as CUDA, NVML or the kernel write it.
struct GpuIdentity {
  std::string uuid = {};
  std::string bus_id = {};
};

// What the workers need of the node's GPUs.
struct GpuNeeds {
  int nproc = 1;                       // workers, at least 1
  std::optional<int> visible = {};     // how many GPUs the workers see
  std::vector<GpuIdentity> used = {};  // these GPUs; empty: all of the node
  bool after_work = false;  // `after` was read right after the GPUs were under load, so that they are not idle
};

// `before`: read before the check, when our own probes have no memory of a GPU; `after`: read after it. Where the GPUs
// were read once only, `before` is empty or the same as `after`. Memory is judged by `before`, counters by how much
// they rose, everything else by `after`. GPUs that the workers do not use are not judged.
std::vector<Finding> judge_gpus(const std::vector<GpuFacts>& before, const std::vector<GpuFacts>& after,
                                const GpuNeeds& needs);

// Whether a GPU has so much memory in use that it would be a finding, and no visible process has any of it. Such memory
// may still be given back by a process that has just ended.
bool has_memory_of_nobody(const std::vector<GpuFacts>& gpus);

// Findings by lines of the kernel log: `recent` ones were written since the job began on this node, `earlier` ones
// before it; the GPU may have been reset after those. There is one finding for each Xid of each GPU, and none for Xids
// that are a program's fault.
std::vector<Finding> xid_findings(std::string_view earlier, std::string_view recent, const GpuNeeds& needs);

// What an Xid says about the GPU for the jobs that come after it.
enum class XidAftermath {
  kNone,       // nothing: it was most often a fault of a program
  kSuspect,    // the GPU works on, and should be reset or inspected at some time
  kUnhealthy,  // the GPU does not work as it should until it is reset, or never again
  kUnknown,    // the number is not known here
};

// By the number of the Xid (src/report/xid.h).
XidAftermath aftermath_of(int number);

}  // namespace elastic::health
