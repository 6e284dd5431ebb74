#pragma once

#include <string>
#include <vector>

#include "health/gpu/kernel_xids.h"
#include "health/gpu/messages.h"
#include "health/hang_evidence/evidence_part.h"
#include "src/base/environment.h"

namespace elastic::evidence {

// What the driver and the kernel's log say, as facts about a hang. `shown` are the GPUs of the node; a lost one counts
// where the workers use it, by `visible`, the value of CUDA_VISIBLE_DEVICES. Of Xids those count that the hardware is
// the cause of. The power of a worker's GPU is a fact about its rank (gpu_power.h).
hang::EvidenceAnswer gpu_facts_of(const std::vector<health::GpuFacts>& shown, const health::XidLog& xids,
                                  const std::vector<hang::EvidenceTask::Worker>& workers,
                                  const std::optional<std::string>& visible);

// Asks NVML by the probe of GPUs (health/gpu/probe), a process of its own, and reads the kernel's log. Without a driver
// nothing is asked.
hang::EvidenceAnswer ask_gpus(const hang::EvidenceTask& task, const Environment& environment);

}  // namespace elastic::evidence
