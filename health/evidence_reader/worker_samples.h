#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/evidence/process_state.h"
#include "health/hang_evidence/evidence_part.h"
#include "health/hang_evidence/process_facts.h"

namespace elastic::evidence {

// The time between two samples of a process.
inline constexpr std::int64_t kBetweenSamplesMs = 2'000;

// What /proc says of a process now, or of one of its threads (0: the process as a whole). It takes no lock of the
// process.
ProcessSample sample_of(std::int64_t pid, std::int64_t thread = 0);

// The workers and what they have started, twice. Takes kBetweenSamplesMs.
std::vector<hang::WorkerSamples> sample_twice(const hang::EvidenceTask& task);
hang::EvidenceAnswer look_at_processes(const hang::EvidenceTask& task);

}  // namespace elastic::evidence
