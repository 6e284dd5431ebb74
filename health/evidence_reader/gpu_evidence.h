#pragma once

#include <optional>
#include <string>
#include <vector>

#include "health/gpu/kernel_xids.h"
#include "health/gpu/messages.h"
#include "health/hang/hang_facts.h"
#include "health/hang_evidence/evidence_part.h"
#include "src/base/environment.h"

namespace elastic::evidence {

// What the driver and the kernel's log say, as facts about a hang. `shown` are the GPUs of the node; a lost one counts
// where the workers use it, by `visible`, the value of CUDA_VISIBLE_DEVICES. Of Xids those count that the hardware is
// the cause of. The power of a worker's GPU is a fact about its rank.
hang::EvidenceAnswer gpu_facts_of(const std::vector<health::GpuFacts>& shown, const health::XidLog& xids,
                                  const std::vector<hang::EvidenceTask::Worker>& workers,
                                  const std::optional<std::string>& visible);

// Asks NVML by the probe of GPUs (health/gpu/probe), a process of its own, and reads the kernel's log. Without a driver
// nothing is asked.
hang::EvidenceAnswer ask_gpus(const hang::EvidenceTask& task, const Environment& environment);

// A worker's GPU, or null where it is not known: that of whose memory the worker, or what it has started, has some, by
// NVML's list of processes; where this list names none of the workers, the one that its local rank names, with
// `visible` as the value of CUDA_VISIBLE_DEVICES, if its memory is in use. A worker with several GPUs has none here,
// and so have two workers that share one. In the order of the workers.
std::vector<const health::GpuFacts*> gpus_of_workers(const std::vector<hang::EvidenceTask::Worker>& workers,
                                                     const std::vector<health::GpuFacts>& shown,
                                                     const std::optional<std::string>& visible);

// The power of the workers' GPUs, each with its model, as facts about their ranks. A GPU in MIG mode serves several
// programs, and its power is nobody's.
std::vector<hang::RankFacts> power_facts_of(const std::vector<hang::EvidenceTask::Worker>& workers,
                                            const std::vector<const health::GpuFacts*>& gpus);

// For people: "GPU 3 (0000:1d:00.0), rank 11: 118 W, busy 100 % of the time, its memory 0 %".
std::vector<std::string> power_lines(const std::vector<hang::EvidenceTask::Worker>& workers,
                                     const std::vector<health::GpuFacts>& shown,
                                     const std::vector<const health::GpuFacts*>& gpus);

}  // namespace elastic::evidence
