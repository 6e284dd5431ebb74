#pragma once

#include <vector>

#include "health/hang_evidence/evidence_part.h"

namespace elastic::evidence {

// Which of the connections `task.peers` are of this node's workers, or of what they have started: by the kernel's
// tables of connections and the descriptors of these processes. Those of other hosts are nobody's here.
hang::EvidenceAnswer find_store_clients(const hang::EvidenceTask& task);

}  // namespace elastic::evidence
