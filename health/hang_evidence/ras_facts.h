#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "health/evidence/ras_comparison.h"
#include "health/evidence/ras_report.h"
#include "health/hang/hang_facts.h"

// What NCCL RAS says, as facts about a hang.
namespace elastic::hang {

// What two reports have in common, the second one taken at least 2 s after the first: counts of ranks that have
// launched nothing between them, and ranks that are missing in both. `ours` are this node's workers, under each address
// of this host. Processes of other nodes are ranks of the job where a communicator of all ranks says which, in which
// our own ones have their own numbers.
NodeFacts ras_facts_of(const evidence::RasReport& first, const evidence::RasReport& second,
                       std::span<const evidence::RasWorker> ours, std::int32_t world_size);

}  // namespace elastic::hang
